// Pictures with a number burnt in, and the reading of it: what SoraFrames' FrameCounter does, for pages. Two rows of
// twenty cells at the top, each row a twelfth of the picture high, hold 32 bits in Gray code and 8 bits of CRC.
const columns = 20;
const rowHeightOf = (height) => Math.max(2, Math.floor(height / 12));

function checksum(gray) {
  let crc = 0xa5;
  for (let byte = 0; byte < 4; byte++) {
    crc ^= (gray >>> (byte * 8)) & 0xff;
    for (let i = 0; i < 8; i++) crc = crc & 0x80 ? ((crc << 1) ^ 0x07) & 0xff : (crc << 1) & 0xff;
  }
  return crc;
}

function draw(luma, width, height, number) {
  const gray = (number ^ (number >>> 1)) >>> 0;
  const bits = [...Array(40).keys()].map((i) => (i < 32 ? (gray >>> i) & 1 : (checksum(gray) >>> (i - 32)) & 1));
  const rowHeight = rowHeightOf(height);
  for (let y = 0; y < rowHeight * 2; y++) {
    for (let column = 0; column < columns; column++) {
      const value = bits[Math.floor(y / rowHeight) * columns + column] ? 235 : 16;
      const left = Math.floor((width * column) / columns);
      luma.fill(value, y * width + left, y * width + Math.floor((width * (column + 1)) / columns));
    }
  }
}

function read(luma, stride, width, height) {
  const rowHeight = rowHeightOf(height);
  let gray = 0;
  let crc = 0;
  for (let bit = 0; bit < 40; bit++) {
    const column = bit % columns;
    const left = Math.floor((width * column) / columns);
    const right = Math.floor((width * (column + 1)) / columns);
    const inset = Math.floor((right - left) / 4);
    const row = Math.floor(bit / columns);
    let sum = 0;
    let count = 0;
    for (let y = row * rowHeight + (rowHeight >> 2); y < (row + 1) * rowHeight - (rowHeight >> 2); y++) {
      for (let x = left + inset; x < right - inset; x++, count++) sum += luma[y * stride + x];
    }
    const isSet = sum >= 126 * count;
    if (isSet && bit < 32) gray |= 1 << bit;
    else if (isSet) crc |= 1 << (bit - 32);
  }
  gray >>>= 0;
  if (crc !== checksum(gray)) return null;
  let number = gray;
  for (const shift of [1, 2, 4, 8, 16]) number = (number ^ (number >>> shift)) >>> 0;
  return number;
}

/// A track of numbered pictures: a bright bar wanders below the number, or `rough` grain that needs all the bits there are.
export function publish({ width, height, fps, first = 0, rough = false }) {
  const track = new MediaStreamTrackGenerator({ kind: "video" });
  const writer = track.writable.getWriter();
  const picture = new Uint8Array(width * height + 2 * (width >> 1) * (height >> 1)).fill(128);
  const begin = performance.now();
  const grain = rough ? Uint8Array.from({ length: width * height + 4096 }, () => 100 + 40 * Math.random()) : null;
  let number = first;
  const timer = setInterval(() => {
    const luma = picture.subarray(0, width * height).fill(90);
    const bar = 2 * rowHeightOf(height) + ((number * 4) % (height >> 1));
    luma.fill(200, bar * width, (bar + (height >> 3)) * width);
    if (grain) luma.set(grain.subarray((number * 1543) % 4096).subarray(0, width * height));
    draw(luma, width, height, number);
    const timestamp = Math.round((performance.now() - begin) * 1000);
    writer.write(new VideoFrame(picture, { format: "I420", codedWidth: width, codedHeight: height, timestamp }))
      .catch(() => clearInterval(timer));
    number++;
  }, 1000 / fps);
  return track;
}

/// Reads the numbers of a track's pictures. The sender of number n is n >> 20.
export class Watch {
  constructor(track) {
    this.reset();
    this.run(new MediaStreamTrackProcessor({ track }).readable.getReader());
  }

  reset() {
    Object.assign(this, {
      frames: 0, unreadable: 0, senders: [], first: null, last: null, step: 0, gap: 0, backwards: 0, previous: null,
    });
  }

  async run(reader) {
    for (;;) {
      const { value: frame, done } = await reader.read();
      if (done) return;
      await this.see(frame).finally(() => frame.close());
    }
  }

  async see(frame) {
    const { codedWidth: width, codedHeight: height, timestamp } = frame;
    const rect = { x: 0, y: 0, width, height: Math.min(height, (2 * rowHeightOf(height) + 1) & ~1) };
    const bytes = new Uint8Array(frame.allocationSize({ rect }));
    const [{ offset, stride }] = await frame.copyTo(bytes, { rect });
    this.frames++;
    this.width = width;
    this.height = height;
    const number = read(bytes.subarray(offset), stride, width, height);
    if (number === null) return void this.unreadable++;
    if (!this.senders.includes(number >>> 20)) this.senders.push(number >>> 20);
    this.first ??= number;
    if (this.last !== null) {
      this.step = Math.max(this.step, number - this.last);
      if (number < this.last) this.backwards++;
    }
    if (this.previous !== null) this.gap = Math.max(this.gap, (timestamp - this.previous) / 1000);
    this.last = number;
    this.previous = timestamp;
  }

  report() {
    const { frames, unreadable, senders, first, last, step, gap, backwards, width = 0, height = 0 } = this;
    return { frames, unreadable, senders, first, last, step, gap, backwards, width, height };
  }
}
