/**
 * Makes errors comparable: masks replace what differs between occurrences. One pass over a bounded piece of the text; every look ahead is
 * bounded or made once, so no text costs more than a small multiple of its length.
 *
 *   '#' numbers, hex, UUIDs and other ids · '<text>' quoted · '<path>' '<url>' '<email>' '<ip>' '<time>'
 */

// Kinds of characters, one bit each.
const SPACE = 1
const QUOTE = 2
const DELIMITER = 4
const DIGIT = 8
const UPPER = 16
const LOWER = 32
const SLASH = 64
const AT = 128
const COLON = 256
/** Ends a chunk, a run of characters looked at as a whole. */
const END = SPACE | QUOTE | DELIMITER
const ALPHANUMERIC = DIGIT | UPPER | LOWER

const KINDS = new Uint16Array(128)
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code)
  if (code <= 32 || code === 127) KINDS[code] = SPACE
  else if ('\'"`'.includes(character)) KINDS[code] = QUOTE
  else if ('()[]{}<>,;=|'.includes(character)) KINDS[code] = DELIMITER
  else if (character >= '0' && character <= '9') KINDS[code] = DIGIT
  else if (character >= 'A' && character <= 'Z') KINDS[code] = UPPER
  else if (character >= 'a' && character <= 'z') KINDS[code] = LOWER
  else if ('/\\'.includes(character)) KINDS[code] = SLASH
  else if (character === '@') KINDS[code] = AT
  else if (character === ':') KINDS[code] = COLON
}

const CLOSERS: ReadonlyMap<number, number> = new Map(
  ['""', "''", '``', '“”', '‘’', '«»'].map((pair) => [pair.charCodeAt(0), pair.charCodeAt(1)]),
)
const WIDE_SPACE = /[\x80-\xa0\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]/

/** Of a UTF-16 unit; 0 for other punctuation. */
function kindOf(code: number): number {
  if (code < 128) return KINDS[code] ?? 0
  if (CLOSERS.has(code)) return QUOTE
  // Letters of other scripts count as lower case.
  return WIDE_SPACE.test(String.fromCharCode(code)) ? SPACE : LOWER
}

const APOSTROPHE = 39
const BACKSLASH = 92

// Sticky; every part is bounded.
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])/iy
const DATE =
  /(?:\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}[-/]\d{1,2}[-/]\d{4})(?:T\d{2}:?\d{2}(?::?\d{2}(?:\.\d{1,9})?)?)?(?:Z|[+-]\d{2}:?\d{2})?(?![0-9a-z])/iy
const TIME_OF_DAY = /\d{1,2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?(?![0-9a-z])/iy
const IPV4 = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?:[:/]\d{1,5})?(?![0-9a-z])/iy
const NAME_OF_TIME = /^(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)$/i
const DAY_OR_YEAR_NEXT = /,? ?(?:\d{1,4}\b|[A-Z][a-z]{2} \d)/y

const IPV6 = /^[0-9a-f:.]+$/i
const HEX = /^(?:0x)?[0-9a-f]+$/i
const TOKEN = /^[\w+/-]+$/
const TOP_LEVEL_DOMAIN = /^[a-z]{2,24}$/i

/** Shorter runs of hex digits are often words ('add', 'decade'). */
const MIN_HEX = 8
/** Longer words with a digit are ids: KSUIDs, ULIDs, hashes. */
const MIN_ID = 16
/** Shorter words with two numbers ('x9k2m4') are ids; product names ('h264') have one. */
const MIN_SHORT_ID = 6
/** Base64, which may hold separators. */
const MIN_TOKEN = 20
/** Longer chunks are split, so that looking at parts again stays cheap. */
const MAX_CHUNK = 1_000

/** Leaves out half a surrogate pair. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit)
}

/** Masks a text and collapses white space; at most `limit` characters, of `readLimit` read. */
export function maskText(text: string, limit: number, readLimit: number): string {
  return new Masking(text, limit, readLimit).run()
}

class Masking {
  readonly #text: string
  readonly #limit: number
  readonly #end: number
  readonly #unclosed = new Set<number>()
  #out = ''
  #spaceDue = false
  #lastMask = ''
  #lastMaskEnd = -1

  constructor(text: string, limit: number, readLimit: number) {
    this.#text = text
    this.#limit = limit
    this.#end = Math.min(text.length, readLimit)
  }

  run(): string {
    let at = 0
    while (at < this.#end && this.#out.length < this.#limit) {
      const kind = this.#kindAt(at)
      if (kind & SPACE) {
        this.#spaceDue = true
        at += 1
      } else if (kind & QUOTE) at = this.#quoted(at)
      else if (kind & DELIMITER) at = this.#literal(at, at + 1)
      else at = this.#chunk(at)
    }
    return cut(this.#out, this.#limit).trimEnd().toWellFormed()
  }

  #kindAt(at: number): number {
    return at < this.#end ? kindOf(this.#text.charCodeAt(at)) : SPACE
  }

  #literal(from: number, to: number): number {
    this.#space()
    this.#out += this.#text.slice(from, to)
    return to
  }

  /** One mask for a list of ids, whatever its length, and for pieces of one thing. */
  #mask(mask: string, to: number): number {
    const gap = mask === this.#lastMask ? this.#out.slice(this.#lastMaskEnd) : null
    if (gap === ',' || (gap === '' && (!this.#spaceDue || mask === '<time>'))) {
      this.#out = this.#out.slice(0, this.#lastMaskEnd)
      this.#spaceDue = false
    } else {
      this.#space()
      this.#out += mask
    }
    this.#lastMask = mask
    this.#lastMaskEnd = this.#out.length
    return to
  }

  #space(): void {
    if (this.#spaceDue && this.#out !== '') this.#out += ' '
    this.#spaceDue = false
  }

  #quoted(at: number): number {
    const opener = this.#text.charCodeAt(at)
    const inWord = opener === APOSTROPHE && at > 0 && (this.#kindAt(at - 1) & ALPHANUMERIC) !== 0
    if (inWord) {
      if (this.#kindAt(at + 1) & (UPPER | LOWER)) return this.#literal(at, at + 1)
    } else {
      const closed = this.#closer(CLOSERS.get(opener) ?? opener, at + 1)
      if (closed !== null) return this.#mask('<text>', closed)
    }
    this.#spaceDue = true
    return at + 1
  }

  /** null: the quote opens nothing. A cut-off quotation ends at the cut. */
  #closer(quote: number, from: number): number | null {
    if (this.#unclosed.has(quote)) return null
    for (let at = from; at < this.#end; at++) {
      const code = this.#text.charCodeAt(at)
      if (code === BACKSLASH) at += 1
      else if (code === quote && !(code === APOSTROPHE && this.#kindAt(at + 1) & ALPHANUMERIC)) return at + 1
    }
    if (this.#end < this.#text.length) return this.#end
    // None follows: nobody has to look again.
    this.#unclosed.add(quote)
    return null
  }

  #chunk(from: number): number {
    let kinds = 0
    let to = from
    for (; to < this.#end && to < from + MAX_CHUNK; to++) {
      const kind = this.#kindAt(to)
      if (kind & END) break
      kinds |= kind
    }
    if (kinds & SLASH) to = this.#endOfLabel(from, to)
    const end = this.#withoutPunctuation(from, to)
    const read = this.#whole(from, end, kinds) ?? this.#words(from, end)
    return read < to ? this.#literal(read, to) : read
  }

  /** 'open:/etc/hosts' is a word and a path; 'C:/x' and 'https://x' are one thing. */
  #endOfLabel(from: number, to: number): number {
    const label = this.#text.slice(from, to).search(/:[/\\]/)
    const isLabel = label > 1 && !this.#text.startsWith('://', from + label)
    return isLabel ? from + label + 1 : to
  }

  /** Sentences end with characters that paths, urls and addresses ('fe80::') may contain. */
  #withoutPunctuation(from: number, to: number): number {
    let end = to
    while (end > from + 1 && '.:!?'.includes(this.#text.charAt(end - 1))) end -= 1
    return end + 2 <= to && this.#text.startsWith('::', end) ? end + 2 : end
  }

  /** Masks a chunk that is one thing; null if it is not. */
  #whole(from: number, to: number, kinds: number): number | null {
    if (!(kinds & (DIGIT | SLASH | AT | COLON))) return null
    const chunk = this.#text.slice(from, to)
    if (kinds & COLON) {
      if (chunk.includes('://')) return this.#mask('<url>', this.#extended(from, to, '(),;=[]{}|'))
      // Five colons make an IPv6 or MAC address; fewer are times and places in files.
      const grouped = chunk.includes('::') || chunk.split(':', 6).length === 6
      if (grouped && kinds & DIGIT && IPV6.test(chunk)) {
        return this.#mask('<ip>', to)
      }
    }
    if (isToken(chunk, kinds)) return this.#mask('#', this.#extended(from, to, '='))
    if (kinds & SLASH && isPath(chunk)) return this.#mask('<path>', this.#extended(from, to, '='))
    if (kinds & AT && isEmail(chunk)) return this.#mask('<email>', to)
    return null
  }

  /** Extends over some characters that separate words elsewhere. */
  #extended(from: number, to: number, allowed: string): number {
    let end = to
    while (end < this.#end && (!(this.#kindAt(end) & END) || allowed.includes(this.#text.charAt(end))))
      end += 1
    while (end > to && '.:!?)]},;'.includes(this.#text.charAt(end - 1))) end -= 1
    return this.#withoutPunctuation(from, end)
  }

  #words(from: number, to: number): number {
    let at = from
    while (at < to) {
      if (this.#kindAt(at) & ALPHANUMERIC) at = this.#word(at)
      else if (this.#isSign(at)) at += 1
      else at = this.#literal(at, at + 1)
    }
    return at
  }

  /** '-5' is a number; the minus of '10-5' and 'order-5' is no sign. */
  #isSign(at: number): boolean {
    const sign = this.#text.charAt(at)
    if (sign !== '-' && sign !== '+') return false
    const before = at === 0 ? SPACE : this.#kindAt(at - 1)
    return (this.#kindAt(at + 1) & DIGIT) !== 0 && (before & ALPHANUMERIC) === 0
  }

  #word(from: number): number {
    let kinds = 0
    let to = from
    for (; to < this.#end; to++) {
      const kind = this.#kindAt(to)
      if (!(kind & ALPHANUMERIC)) break
      kinds |= kind
    }
    const known = this.#known(from, to)
    if (known !== null) return known
    if (!(kinds & DIGIT)) return this.#wordOfLetters(from, to)
    if (kinds !== DIGIT && isId(this.#text.slice(from, to))) return this.#mask('#', to)
    return this.#kindAt(from) & DIGIT ? this.#mask('#', this.#number(from)) : this.#mixed(from, to)
  }

  #wordOfLetters(from: number, to: number): number {
    const length = to - from
    if (length >= MIN_HEX && HEX.test(this.#text.slice(from, to))) return this.#mask('#', to)
    if (length === 3 && this.#isNameOfTime(from, to)) return this.#mask('<time>', to)
    return this.#literal(from, to)
  }

  /** 'Mon, 02 Jan 2006': only beside numbers, so that 'may' stays a word. */
  #isNameOfTime(from: number, to: number): boolean {
    if (!NAME_OF_TIME.test(this.#text.slice(from, to))) return false
    DAY_OR_YEAR_NEXT.lastIndex = to
    return DAY_OR_YEAR_NEXT.test(this.#text)
  }

  /** UUIDs, dates, times, addresses. */
  #known(from: number, to: number): number | null {
    const next = this.#text.charAt(to)
    const length = to - from
    if (length === 8 && next === '-') return this.#match(UUID, '#', from)
    if (length > 4 || !(this.#kindAt(from) & DIGIT)) return null
    if (next === '-' || next === '/') return this.#match(DATE, '<time>', from)
    if (next === ':') return this.#match(TIME_OF_DAY, '<time>', from)
    return next === '.' ? this.#match(IPV4, '<ip>', from) : null
  }

  #match(shape: RegExp, mask: string, from: number): number | null {
    shape.lastIndex = from
    return shape.test(this.#text) ? this.#mask(mask, shape.lastIndex) : null
  }

  /** '1,000.5', '1.2.3', '6.02e23'. */
  #number(from: number): number {
    let at = this.#digits(from)
    while (/^[.,]$/.test(this.#text.charAt(at)) && this.#kindAt(at + 1) & DIGIT) at = this.#digits(at + 1)
    if (this.#text.charAt(at).toLowerCase() !== 'e') return at
    const signed = /^[+-]$/.test(this.#text.charAt(at + 1)) ? at + 2 : at + 1
    const end = this.#digits(signed)
    return end > signed && !(this.#kindAt(end) & ALPHANUMERIC) ? end : at
  }

  #digits(from: number): number {
    let at = from
    while (this.#kindAt(at) & DIGIT) at += 1
    return at
  }

  /** 'v2', 'utf8', 'node12a': the letters stay. */
  #mixed(from: number, to: number): number {
    let at = from
    while (at < to) {
      let end = at
      const isNumber = this.#kindAt(at) & DIGIT
      while (end < to && (this.#kindAt(end) & DIGIT) === isNumber) end += 1
      at = isNumber ? this.#mask('#', end) : this.#literal(at, end)
    }
    return to
  }
}

function isId(word: string): boolean {
  if (word.length >= MIN_ID) return true
  if (HEX.test(word) && (word.length >= MIN_HEX || word.startsWith('0x'))) return true
  return word.length >= MIN_SHORT_ID && /\d[^\d]+\d/.test(word)
}

function isToken(chunk: string, kinds: number): boolean {
  const mixed = UPPER | LOWER | DIGIT
  if (chunk.length < MIN_TOKEN || (kinds & mixed) !== mixed) return false
  if (chunk.startsWith('eyJ')) return true
  // Paths have slashes close together, or at their start.
  const slashes = kinds & SLASH ? chunk.split('/').length - 1 : 0
  return !chunk.startsWith('/') && slashes * 12 <= chunk.length && TOKEN.test(chunk)
}

function isPath(chunk: string): boolean {
  if (/^(?:[/\\][^/\\]|\\\\|\.{1,2}[/\\]|~[/\\]|[a-z]:[/\\])/i.test(chunk)) return chunk.length > 1
  if (/^[\d/\\]/.test(chunk)) return false
  const parts = chunk.split(/[/\\]/, 3)
  return parts.length > 2 || /\.[a-z]/i.test(parts[1] ?? '')
}

function isEmail(chunk: string): boolean {
  const at = chunk.indexOf('@')
  const dot = chunk.lastIndexOf('.')
  return at > 0 && dot > at + 1 && TOP_LEVEL_DOMAIN.test(chunk.slice(dot + 1))
}
