// Pictures and changes as the page holds them, unpacked when they are needed.
//
// A sheet is a PNG with many pictures, in base64. A change is text in base64: flat indices of the
// changed pixels (32 bits), channel values before (8 bits) and after (16 bits).

// `readText(name)` gives the text of "sheet-N" and "changes-TASK-BLOCK".
export function openPictures(readText, places, blockSize) {
  const sheets = new Map();
  const blocks = new Map();

  function sheet(number) {
    if (!sheets.has(number)) {
      const image = new Image();
      image.src = `data:image/png;base64,${readText(`sheet-${number}`)}`;
      sheets.set(number, image.decode().then(() => image));
    }
    return sheets.get(number);
  }

  return {
    // {image, left, top, width, height}, or null for none
    async picture(number) {
      if (number === null || number === undefined) return null;
      const [at, left, top, width, height] = places[number];
      return { image: await sheet(at), left, top, width, height };
    },
    // What an attack did to an image: {pixels, size, channels}, {picture}, each may have an explanation
    change(task, image, attack) {
      const name = `changes-${task}-${Math.floor(image / blockSize)}`;
      if (!blocks.has(name)) blocks.set(name, JSON.parse(readText(name)));
      return blocks.get(name)[attack]?.[image % blockSize] ?? null;
    },
  };
}

// {width, height, channels, pixels, before, after}: values before in 0..255, after in 0..65535.
export function unpackChange({ pixels: text, channels, size: [width, height] }) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const count = bytes.length / (4 + 3 * channels);
  const view = new DataView(bytes.buffer);
  const pixels = Uint32Array.from({ length: count }, (_, at) => view.getUint32(4 * at, true));
  const before = bytes.subarray(4 * count, (4 + channels) * count);
  const start = (4 + channels) * count;
  const after = Uint16Array.from({ length: channels * count }, (_, at) => view.getUint16(start + 2 * at, true));
  return { width, height, channels, pixels, before, after };
}
