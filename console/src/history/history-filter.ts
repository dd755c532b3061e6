/** Which entries of history are asked for: the filters of the address, which are those of the API. */
export const HISTORY_FILTERS = [
  'engine',
  'operation',
  'status',
  'instanceId',
  'correlationId',
  'fromDate',
  'toDate',
] as const
export type HistoryFilterName = (typeof HISTORY_FILTERS)[number]

export type HistoryAsked = { readonly [Name in HistoryFilterName]?: string }

/** The filters among the parameters of an address. */
export function filterIn(search: HistoryAsked): HistoryAsked {
  return Object.fromEntries(
    HISTORY_FILTERS.flatMap((name) => {
      const value = search[name]?.trim()
      return value === undefined || value === '' ? [] : [[name, value]]
    }),
  )
}
