/** Source ids: what sources call what they report, and the forms that are reserved. */
import { KSUID_LENGTH } from './ksuid.ts'

/** What the ids of letters begin with that were exported from one office and imported into another: they say so, at every office alike. */
export const IMPORT_PREFIX = 'import:'

export const isImported = (sourceId: string): boolean => sourceId.startsWith(IMPORT_PREFIX)

/** What its source calls something, of an engine: no engine has a space in its name. */
export const sourceName = ({ engine, sourceId }: { readonly engine: string; readonly sourceId: string }) =>
  `${engine} ${sourceId}`

/**
 * Source ids of items that died in the queue of an engine. Reporters choose the source ids of an engine's other letters, and
 * some choose the id of the item; the prefix keeps the two apart. Letters of plain queues have the bare id: nobody else
 * files letters under the engine `queues`.
 */
const PREFIX = 'item-'
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${KSUID_LENGTH}}$`)

/** The source id of an item that died in the queue of an engine. */
export const engineSourceId = (itemId: string): string => `${PREFIX}${itemId}`

/** Whether only items may have it. */
export const isEngineSourceId = (sourceId: string): boolean => FORM.test(sourceId)

/** The id of the item that the letter was made from. */
export const itemIdOf = (sourceId: string): string =>
  isEngineSourceId(sourceId) ? sourceId.slice(PREFIX.length) : sourceId
