/** How many columns of a terminal a text takes, and texts cut to a number of columns. */

const SEGMENTER = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** East Asian scripts and symbols that terminals draw two columns wide; not complete, and near enough to line up. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u
const PLAIN = /^[\x20-\x7e]*$/

/** The columns that a printable text takes. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const { segment } of SEGMENTER.segment(text)) width += graphemeWidth(segment)
  return width
}

const graphemeWidth = (grapheme: string): number => {
  if (/^[\p{Mn}\p{Me}\p{Cf}]+$/u.test(grapheme)) return 0
  return WIDE.test(grapheme) || grapheme.includes('\ufe0f') ? 2 : 1
}

/** The text, or its beginning and an ellipsis, in at most that many columns. */
export function cut(text: string, columns: number): string {
  if (PLAIN.test(text)) return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`
  // Of a very long text only what could fit is measured.
  const near = text.slice(0, columns * 16)
  if (near.length === text.length && widthOf(text) <= columns) return text
  let kept = ''
  let width = 0
  for (const { segment } of SEGMENTER.segment(near)) {
    width += graphemeWidth(segment)
    if (width > columns - 1) break
    kept += segment
  }
  return `${kept}…`
}

/** The text with spaces after it, to that many columns. */
export const padEnd = (text: string, columns: number): string =>
  text + ' '.repeat(Math.max(0, columns - widthOf(text)))

/** The text with spaces before it, to that many columns. */
export const padStart = (text: string, columns: number): string =>
  ' '.repeat(Math.max(0, columns - widthOf(text))) + text

/** The text in lines of at most that many columns, broken between words; a word that is longer stands alone. */
export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= columns)
      lines.splice(-1, 1, `${last} ${word}`)
    else lines.push(word)
  }
  return lines
}
