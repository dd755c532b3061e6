/** Source ids of letters that were exported from one office and imported into another: they say so, at every office alike. */

/** What such an id begins with. */
export const IMPORT_PREFIX = 'import:'

export const isImported = (sourceId: string): boolean => sourceId.startsWith(IMPORT_PREFIX)
