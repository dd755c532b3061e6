/** What became of an id that was minted for a publish, as `kafka_sends` keeps it. */
export const SEND = { publishing: 0, uncertain: 1, published: 2, failed: 3 } as const
/** The condition of kafka_sends_unplaced: a copy may lie where nobody knows, and has not come back. */
export const UNPLACED = `(published_offset IS NULL OR resends > 0) AND reopened = 0 AND outcome <> ${SEND.failed}`
export type SendOutcomeName = keyof typeof SEND

export function sendOutcomeName(outcome: number): SendOutcomeName {
  // Numbered in their order.
  const name = (Object.keys(SEND) as readonly SendOutcomeName[])[outcome]
  if (name === undefined) throw new Error(`no outcome has the number ${outcome}`)
  return name
}
