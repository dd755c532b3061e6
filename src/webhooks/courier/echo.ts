/**
 * Receivers that fail often give back what they were sent. What they said is shown in more places than tokens and payloads may be,
 * so both are taken out of it: secrets wherever they stand, and of a payload all of it or any long run. Pure.
 */

const HIDDEN = '[…]'

/** Runs of twice this length are always found, shorter than this never: names of fields stay, what they hold mostly does not. */
const RUN = 16
/** A payload as short as a word would be found in anything. */
const LEAST_PAYLOAD = 6
/** What is given back is mostly the beginning. */
const MOST_PAYLOAD_BYTES = 65_536

/** Line ends, controls and what is invisible: what is said stands in one line, and so must what it is compared with. */
const UNSEEN = /[\s\p{C}]+/gu

/** What was said, without what was sent. */
export function withoutEcho(said: string, secrets: readonly string[], payload: Uint8Array): string {
  let rest = said
  for (const secret of secrets) if (secret !== '') rest = rest.replaceAll(secret, HIDDEN)
  const sent = new TextDecoder().decode(payload.subarray(0, MOST_PAYLOAD_BYTES)).replace(UNSEEN, ' ').trim()
  if (sent.length >= LEAST_PAYLOAD) rest = rest.replaceAll(sent, HIDDEN)
  return withoutRuns(rest, sent)
}

function withoutRuns(said: string, sent: string): string {
  let kept = ''
  let from = 0
  for (let at = 0; at + RUN <= said.length; ) {
    const found = sent.indexOf(said.slice(at, at + RUN))
    if (found < 0) {
      at += RUN
      continue
    }
    let start = at
    for (let i = found; start > from && i > 0 && said[start - 1] === sent[i - 1]; i--) start -= 1
    let end = at + RUN
    for (let i = found + RUN; end < said.length && i < sent.length && said[end] === sent[i]; i++) end += 1
    kept += said.slice(from, start) + HIDDEN
    from = end
    at = end
  }
  return kept + said.slice(from)
}
