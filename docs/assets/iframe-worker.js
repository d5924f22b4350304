/*
 * The search runs in a Worker, and browsers refuse a Worker to pages that are opened as files. Here such a page gets one
 * that runs its script in a hidden frame. The search's own script looks for the name IFrameWorker and finds its folder by
 * the frame's script element.
 */
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.onmessage = null;
    this.onerror = null;
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.appendChild(frame);
    const inside = frame.contentWindow;
    inside.importScripts = (...urls) =>
      urls.reduce((before, each) => before.then(() => this.load(inside, each)), Promise.resolve());
    inside.postMessage = (data) => {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    };
    this.inside = inside;
    this.ready = this.load(inside, url);
  }

  load(inside, url) {
    return new Promise((done, failed) => {
      const script = inside.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      script.onload = done;
      script.onerror = failed;
      inside.document.body.appendChild(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => {
      const event = new MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
    });
  }

  terminate() {
    this.inside.frameElement.remove();
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
