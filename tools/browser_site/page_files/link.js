// A program as a part of an address, after the "#": tn1.TEXT.CHECKSUM.
//
// The form is that of tinynode/show/program_link.py. TEXT is the title, a line end and the program:
// UTF-8, compressed (deflate), base64url. A stranger wrote the link: limits hold before and while
// the text is decompressed. The file needs no page.

export const MOST_LINK = 16_000; // characters after the "#"
export const MOST_TEXT = 100_000; // bytes of title and program
export const MOST_TITLE = 100; // characters

const VERSION = 1;
const FORM = /^tn([1-9][0-9]{0,3})\.([A-Za-z0-9_-]+)\.([0-9a-f]{8})$/;
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]|[^\P{Zs} ]/u; // in a title; a space is visible
const COPY = "Copy the whole link again.";

export class LinkError extends Error {}

// The part of an address with a program. Throws a LinkError for a text that is too long.
export async function encode(program, title = "") {
  const plain = cleanTitle(title);
  const text = `${plain}\n${program.replace(/\r\n?/g, "\n")}`;
  const content = new TextEncoder().encode(text);
  if (content.length > MOST_TEXT) {
    throw new LinkError(
      `The program is too long: ${number(content.length)} bytes; a link holds ` +
        `${number(MOST_TEXT)} at most.`,
    );
  }
  const packer = streamOf(() => new CompressionStream("deflate-raw"));
  const small = await collected(through(content, packer), Infinity);
  const checksum = crc32(content).toString(16).padStart(8, "0");
  const part = `tn${VERSION}.${toLetters(small)}.${checksum}`;
  if (part.length > MOST_LINK) {
    throw new LinkError(
      `The program is too long: its link has ${number(part.length)} characters after the #, ` +
        `and ${number(MOST_LINK)} is the most.`,
    );
  }
  return part;
}

// The {title, program} of a part of an address. Throws a LinkError for all else.
export async function decode(part) {
  if (part.length > MOST_LINK) {
    throw new LinkError(`The link is too long: ${number(MOST_LINK)} characters is the most.`);
  }
  const found = FORM.exec(part);
  if (found === null) throw new LinkError(`This is no link with a program. ${COPY}`);
  if (Number(found[1]) !== VERSION) {
    throw new LinkError(
      `The link has version ${found[1]}, and this page reads version ${VERSION}. ` +
        "Open the link on a newer site.",
    );
  }
  const content = await inflated(fromLetters(found[2]));
  if (crc32(content) !== Number.parseInt(found[3], 16)) {
    throw damaged("the checksum differs");
  }
  const text = textOf(content);
  const end = text.indexOf("\n");
  const title = text.slice(0, Math.max(end, 0));
  if (end < 0 || cleanTitle(title) !== title) throw damaged("its first line is no title");
  return { title, program: text.slice(end + 1) };
}

// The title without characters that no reader sees.
export function cleanTitle(title) {
  const visible = [...title].map((letter) => (INVISIBLE.test(letter) ? " " : letter));
  return visible.slice(0, MOST_TITLE).join("");
}

export const number = (value) => value.toLocaleString("en");

const damaged = (why) => new LinkError(`The link is damaged: ${why}. ${COPY}`);

function streamOf(make) {
  try {
    return make();
  } catch {
    throw new LinkError("This browser is too old for links with programs. Use a newer one.");
  }
}

function through(bytes, transform) {
  return new Blob([bytes]).stream().pipeThrough(transform);
}

// The bytes of a stream; null if there are more than most.
async function collected(stream, most) {
  const reader = stream.getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      return null;
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function inflated(small) {
  let content;
  const opener = streamOf(() => new DecompressionStream("deflate-raw"));
  try {
    content = await collected(through(small, opener), MOST_TEXT);
  } catch {
    throw damaged("its text cannot be decompressed");
  }
  if (content === null) {
    throw new LinkError(
      `The program is too long: more than ${number(MOST_TEXT)} bytes. The page does not open it.`,
    );
  }
  return content;
}

function textOf(content) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw damaged("its text is not UTF-8");
  }
}

function toLetters(bytes) {
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromLetters(letters) {
  try {
    const binary = atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  } catch {
    throw damaged("its letters have a wrong length");
  }
}

// The checksum of zlib.crc32, bit by bit: programs are short.
function crc32(bytes) {
  let rest = 0xffffffff;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit += 1) {
      const isOdd = rest & 1;
      rest >>>= 1;
      if (isOdd) rest ^= 0xedb88320;
    }
  }
  return (rest ^ 0xffffffff) >>> 0;
}
