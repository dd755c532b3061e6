/** Where redrives are in the API, for calls that want more, or less, patience than the client has. */
import { pathTo } from '../../client/envelope.ts'

export const REDRIVES = '/api/redrives'

/** The path of one redrive, or of something of it. */
export const redrivePath = (id: string, ...parts: readonly string[]): string => pathTo(REDRIVES, id, ...parts)
