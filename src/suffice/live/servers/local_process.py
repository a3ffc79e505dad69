"""The embedded model's process: llama.cpp's server, until its parent is gone."""

import json
import os
import sys


def main() -> None:
    """Serve, print where, and wait for the end of input."""
    import xllamacpp

    settings = json.loads(sys.argv[1])
    address = os.dup(1)
    os.dup2(2, 1)  # what the library prints goes where its log goes
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.endpoint_slots = True
    params.port = 0
    server = xllamacpp.Server(params)
    os.write(address, f"{server.listening_address}\n".encode())
    os.close(address)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
