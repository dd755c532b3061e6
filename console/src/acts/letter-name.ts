/** What a letter is called within the console. */
import type { LetterKey } from '../api/types.ts'

/** `engine/rowKey`: the key of rows, and how addresses name a letter. */
export const nameOf = ({ engine, rowKey }: LetterKey): string => `${engine}/${rowKey}`
