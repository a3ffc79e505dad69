"""A collector of traces in a process of its own: it decodes what is posted to it and prints it, a span a line."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        import gzip

        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        sent = ExportTraceServiceRequest.FromString(body)
        for resource in sent.resource_spans:
            told = {one.key: one.value.string_value or one.value.int_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    about = {"path": self.path, "name": span.name, "kind": span.kind, "resource": told}
                    ids = {"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex()}
                    print(json.dumps(about | ids | {"events": len(span.events)}), flush=True)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        pass


@contextmanager
def collector() -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """Its address, and the spans as they arrive."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.stdout.readline().strip(), map(json.loads, process.stdout)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
