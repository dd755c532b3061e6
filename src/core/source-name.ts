/** What its source calls something, of an engine: no engine has a space in its name. */
export const sourceName = ({ engine, sourceId }: { readonly engine: string; readonly sourceId: string }) =>
  `${engine} ${sourceId}`
