/** Control characters in ids and names, which terminals and logs would obey instead of showing. */

/** Whether there is one in the text. */
export const hasControlCharacter = (text: string): boolean => /\p{Cc}/u.test(text)
