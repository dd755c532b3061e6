/** The ids of the messages that are sent here: a number, and when it was sent. */

/** Milliseconds on a clock that all processes of a machine share. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

/** The id of a message that is sent right now. */
export const messageId = (n: number): string => `${n}.${process.hrtime.bigint() / 1000n}`

export function readMessageId(id: string): { readonly n: number; readonly sentAtMs: number } {
  const [n, sentAtUs] = id.split('.').map(Number)
  return { n: n ?? Number.NaN, sentAtMs: (sentAtUs ?? Number.NaN) / 1000 }
}
