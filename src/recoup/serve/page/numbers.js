/** Numbers as they are read, typed and shown. */

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const TWO_WAYS = /\d,\d/;

/** The number that was typed; an Error with a sentence where it is none. */
export function number(text) {
  const plain = text.trim().replace(/[\u2212\u2013]/g, "-");
  if (TWO_WAYS.test(plain)) {
    throw new Error(`\u201c${brief(plain)}\u201d can be read in two ways: write a point for decimals, and spaces between several.`);
  }
  if (!NUMBER.test(plain)) throw new Error(`\u201c${brief(plain)}\u201d is no number.`);
  const value = Number(plain);
  if (!Number.isFinite(value)) throw new Error(`\u201c${brief(plain)}\u201d is too large for a number.`);
  return value;
}

/** One or several numbers, with spaces, semicolons or line ends between them. */
export function numbers(text) {
  const words = text.split(/[\s;]+|,\s+/).filter(Boolean);
  if (!words.length) throw new Error("Type the number that came of it.");
  return words.map(number);
}

function brief(text) {
  return text.length > 40 ? `${text.slice(0, 40)}\u2026` : text;
}

/** A value with every digit that it has: to be typed somewhere else. */
export function exact(value) {
  return value === null || value === undefined ? "" : String(value);
}

/** A value to be read: five digits, or more where it is a whole number. */
export function short(value, digits = 5) {
  if (typeof value !== "number") return exact(value);
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return String(value);
  if (size >= 10 ** digits - 0.5 && size < 1e9) return String(Math.round(value));
  const text = value.toPrecision(digits);
  const [mantissa, power] = text.split("e");
  const trimmed = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return power ? `${trimmed}e${power.replace("+", "")}` : trimmed;
}

/** A whole number with a space between thousands. */
export function count(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

export function plural(n, noun) {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

export function percent(share) {
  const whole = Math.abs(share) >= 0.0995; // two digits of it are whole numbers
  return `${whole ? Math.round(100 * share) : short(100 * share, 2)}\u00a0%`;
}

/** `9.84 (95 %: 9.2 to 10.5)`, or the number alone where there is no interval. */
export function between(value, low, high) {
  const known = typeof low === "number" && typeof high === "number";
  const [said, least, most] = known ? apart(value, low, high) : [short(value, 4)];
  return known ? `${said} (95\u00a0%: ${least} to ${most})` : said;
}

/** Numbers with four digits, or as many more as tell the least from the largest to two: as sentences have them. */
export function apart(...values) {
  const digits = telling(Math.min(...values), Math.max(...values));
  return values.map((value) => short(value, digits));
}

/** Where values lie: with five digits, or as many more. */
export function fromTo(low, high) {
  const digits = Math.max(5, telling(low, high));
  return `from ${short(low, digits)} to ${short(high, digits)}`;
}

/** How many digits tell one number from another to two, four at least. */
export function telling(low, high) {
  const places = Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / Math.abs(high - low))) + 2;
  return Number.isFinite(places) ? Math.min(Math.max(places, 4), 15) : 4;
}

/** Ticks of an axis, with as many digits as tell each from the next. */
export function ticks(values) {
  const known = values.filter((value) => value !== null);
  const step = Math.min(...known.slice(1).map((value, i) => Math.abs(value - known[i])));
  const largest = Math.max(...known.map(Math.abs));
  return values.map((value) => (value === null ? "" : short(value, telling(largest - step, largest))));
}

/** A mean and its standard error, with as many digits as the error allows: as `recoup report` has them. */
export function measured(mean, stderr) {
  if (typeof mean !== "number" || typeof stderr !== "number") return "\u2013";
  const none = stderr === 0 || stderr < 1e-9 * Math.abs(mean); // rounding, of episodes that are all the same
  let digits = none ? 2 : 0;
  while (!none && stderr < 2 * 10 ** -digits && digits < 6) digits += 1;
  return `${mean.toFixed(digits)} \u00b1 ${stderr.toFixed(digits)}`;
}

/** A time that the server gave, in words of this browser's place; never compared with its clock. */
export function when(at) {
  if (at === null || at === undefined) return "";
  const date = new Date(typeof at === "number" ? 1000 * at : at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toLocaleString();
}
