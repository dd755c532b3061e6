/** Texts of others in a line of ours: what cannot be seen, or turns the direction of what follows, is written out. Pure. */

/** Control characters other than tabs and line ends, marks without width, and those that turn the direction of what follows. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSEEN = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/

const ALL_UNSEEN = new RegExp(UNSEEN, 'g')

/** Whether there is something in it that cannot be seen. */
export const hasUnseen = (text: string): boolean => UNSEEN.test(text)

/** `invoice\u202Efdp.exe` as it is spelled, and not as it would be shown. */
export const visible = (text: string): string =>
  text.replace(
    ALL_UNSEEN,
    (character) => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  )
