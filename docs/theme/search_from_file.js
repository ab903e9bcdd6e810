// Search from a folder: browsers refuse workers to pages from file:. There, this class stands in
// for a worker. It runs the script in a hidden frame, which passes messages on in both directions.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.loaded = new Promise((done, failed) => {
        this.frame.onload = () => {
          const inside = this.frame.contentWindow;
          inside.postMessage = (data) => this.onmessage?.({ data: structuredClone(data) });
          const script = inside.document.createElement("script");
          script.src = new URL(address, document.baseURI);
          script.onload = () => done(inside);
          script.onerror = () => failed(new Error(`cannot load ${script.src}`));
          inside.document.head.append(script);
        };
      });
      this.loaded.catch((error) => this.onerror?.(error));
      document.documentElement.append(this.frame);
    }

    postMessage(data) {
      const copy = structuredClone(data); // as to a worker: neither side sees the other's changes
      this.loaded.then((inside) => inside.onmessage({ data: copy }), () => {});
    }

    terminate() {
      this.frame.remove();
    }
  };
}
