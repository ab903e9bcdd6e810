// Painting where pixels may change. Nothing painted means everywhere.

export class MaskBrush {
  constructor(stage, onChange) {
    this.stage = stage;
    this.onChange = onChange;
    this.bits = null; // a byte per pixel; null for everywhere
    this.mode = ""; // "paint", "erase", or neither
    this.size = 12;
    const over = stage.over;
    over.addEventListener("pointerdown", (event) => {
      if (!this.mode) return;
      over.setPointerCapture(event.pointerId);
      this.last = null;
      this.stroke(event);
      event.preventDefault();
    });
    over.addEventListener("pointermove", (event) => {
      if (this.mode && over.hasPointerCapture(event.pointerId)) this.stroke(event);
    });
    over.addEventListener("pointerup", () => this.mode && this.onChange());
    stage.layers.push((context, scale) => this.draw(context, scale));
  }

  setMode(mode) {
    this.mode = this.mode === mode ? "" : mode;
    this.stage.over.classList.toggle("painting", Boolean(this.mode));
    this.stage.draw();
  }

  clear() {
    this.bits = null;
    this.stage.draw();
    this.onChange();
  }

  stroke(event) {
    const { width, height } = this.stage;
    const { row, column, perPixel } = this.stage.place(event);
    if (!this.bits || this.bits.length !== width * height) {
      if (this.mode === "erase" && !this.bits) this.bits = new Uint8Array(width * height).fill(1);
      else this.bits = new Uint8Array(width * height);
    }
    const radius = Math.max(0.5, this.size / perPixel);
    const from = this.last ?? { row, column };
    const count = Math.ceil(Math.hypot(row - from.row, column - from.column) / (radius / 2)) || 1;
    for (let i = 1; i <= count; i++) {
      this.dab(from.row + ((row - from.row) * i) / count, from.column + ((column - from.column) * i) / count, radius);
    }
    this.last = { row, column };
    this.stage.draw();
  }

  dab(row, column, radius) {
    const { width, height } = this.stage;
    const value = this.mode === "paint" ? 1 : 0;
    for (let y = Math.max(0, Math.floor(row - radius)); y <= Math.min(height - 1, row + radius); y++) {
      for (let x = Math.max(0, Math.floor(column - radius)); x <= Math.min(width - 1, column + radius); x++) {
        if (Math.hypot(y + 0.5 - row, x + 0.5 - column) <= radius) this.bits[y * width + x] = value;
      }
    }
  }

  // Darkens where nothing may change.
  draw(context, scale) {
    const { width, height } = this.stage;
    if (!this.bits || this.bits.length !== width * height) return;
    context.fillStyle = "rgb(10 10 14 / 62%)";
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        if (this.bits[y * width + x]) continue;
        let end = x + 1;
        while (end < width && !this.bits[y * width + end]) end++;
        context.fillRect(x * scale, y * scale, (end - x) * scale, scale + 0.5);
        x = end;
      }
    }
  }

  // One bit per pixel in base64; empty for everywhere.
  text() {
    if (!this.bits) return "";
    const packed = new Uint8Array(Math.ceil(this.bits.length / 8));
    this.bits.forEach((bit, index) => {
      if (bit) packed[index >> 3] |= 128 >> (index & 7);
    });
    let binary = "";
    for (const byte of packed) binary += String.fromCharCode(byte);
    return btoa(binary);
  }

  read(text, count) {
    this.bits = null;
    if (text) {
      const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      this.bits = Uint8Array.from({ length: count }, (_, index) => (packed[index >> 3] >> (7 - (index & 7))) & 1);
    }
    this.stage.draw();
  }
}
