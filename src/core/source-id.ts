/** Source ids, and their reserved forms. */
import { KSUID_LENGTH } from './ksuid.ts'

/** The instance of messages whose worker names none; they share no key. */
export const UNNAMED_INSTANCE = 'publisher'

/** Of letters exported from one office and imported into another. */
export const IMPORT_PREFIX = 'import:'

export const isImported = (sourceId: string): boolean => sourceId.startsWith(IMPORT_PREFIX)

/** No engine has a space in its name. */
export const sourceName = ({ engine, sourceId }: { readonly engine: string; readonly sourceId: string }) =>
  `${engine} ${sourceId}`

/** For items that died in an engine's queue: keeps them apart from reporters' ids. Items of plain queues have bare ids. */
const PREFIX = 'item-'
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${KSUID_LENGTH}}$`)

export const engineSourceId = (itemId: string): string => `${PREFIX}${itemId}`

/** Only items may have it. */
export const isEngineSourceId = (sourceId: string): boolean => FORM.test(sourceId)

export const itemIdOf = (sourceId: string): string =>
  isEngineSourceId(sourceId) ? sourceId.slice(PREFIX.length) : sourceId
