// A picture dropped, chosen or pasted, and what the chosen model sees in it.

import { complain, post, upload } from "./api.js";
import { loadImage } from "./stage.js";

export class PictureDrop {
  constructor(onSeen) {
    this.onSeen = onSeen;
    this.id = "";
    this.drop = document.getElementById("drop");
    this.model = document.getElementById("model");
    const file = document.getElementById("file");
    file.onchange = () => file.files[0] && this.take(file.files[0]);
    this.drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.drop.classList.add("over");
    });
    this.drop.addEventListener("dragleave", () => this.drop.classList.remove("over"));
    this.drop.addEventListener("drop", (event) => {
      event.preventDefault();
      this.drop.classList.remove("over");
      if (event.dataTransfer.files[0]) this.take(event.dataTransfer.files[0]);
    });
    addEventListener("paste", (event) => {
      if (event.clipboardData?.files[0]) this.take(event.clipboardData.files[0]);
    });
    this.model.addEventListener("change", () => this.look());
  }

  async take(file) {
    try {
      this.id = (await upload(file)).id;
      await this.look();
    } catch (error) {
      complain(error);
    }
  }

  get address() {
    return `/prepared.png?picture=${this.id}&model=${encodeURIComponent(this.model.value)}`;
  }

  // Asks the model about the picture; quiet where a job is shown already.
  async look(quiet = false) {
    if (!this.id) return;
    const [picture, model] = [this.id, this.model.value];
    this.drop.classList.add("busy");
    try {
      const seen = await post("/look", { picture, model });
      if (picture !== this.id || model !== this.model.value) return; // another was chosen meanwhile
      await this.thumb();
      document.getElementById("seen").textContent = `${seen.prediction.name}, ${(100 * seen.confidence).toFixed(1)} %`;
      this.onSeen(seen, quiet);
    } catch (error) {
      if (!quiet) complain(error);
    } finally {
      this.drop.classList.remove("busy");
    }
  }

  async thumb() {
    const image = await loadImage(this.address);
    const canvas = document.getElementById("thumb");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    canvas.hidden = false;
    document.getElementById("drop-text").hidden = true;
  }
}
