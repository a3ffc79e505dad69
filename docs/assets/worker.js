// Browsers start no worker from disk. There the search runs in a frame instead, which speaks as a worker does.
if (location.protocol === "file:")
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (said) => {
        const data = structuredClone(said); // a worker's words are copies: neither side sees what the other changes
        setTimeout(() => this.onmessage?.({ data }));
      };
      this.ready = new Promise((loaded, failed) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: url, onload: loaded, onerror: failed });
        inside.document.body.append(script);
      });
      this.ready.catch(() => this.onerror?.(new Event("error")));
    }

    postMessage(said) {
      const data = structuredClone(said);
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data }))).catch(() => {});
    }

    terminate() {
      this.frame.remove();
    }
  };
