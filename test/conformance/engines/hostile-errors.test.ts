/** Contract 3 and the bad input: error texts of any size and kind are captured, quickly, and cut where they must be. */
import { expect, it } from 'vitest'
import { captureBody, type Listed, offices, unique } from './bed.ts'

const KIB_32 = 32 * 1024
/** Room for a mark such as "… cut, 1,000,000 bytes in all". */
const MARK_BYTES = 200
const MEGABYTE = 1_000_000

const BAITS: [name: string, text: string][] = [
  ['a million letters', 'x'.repeat(MEGABYTE)],
  ['a million digits', '7'.repeat(MEGABYTE)],
  ['a million quotes', '"'.repeat(MEGABYTE)],
  ['a million slashes', '/'.repeat(MEGABYTE)],
  ['a million dots', '.'.repeat(MEGABYTE)],
  ['a million blanks and a letter', `${' '.repeat(MEGABYTE)}x`],
  ['half quotes', `'${'a\\'.repeat(MEGABYTE / 2)}`],
  ['brackets that never close', '([{<'.repeat(MEGABYTE / 4)],
  ['urls without end', 'http://a.'.repeat(MEGABYTE / 9)],
  ['hex and dashes', 'deadbeef-'.repeat(MEGABYTE / 9)],
  ['almost uuids', '123e4567-e89b-12d3-a456-42661417400z '.repeat(MEGABYTE / 37)],
  ['a-a-a-a', `${'a-'.repeat(MEGABYTE / 2)}!`],
  ['paths', '/usr/lib'.repeat(MEGABYTE / 8)],
  ['emails', 'a@a.'.repeat(MEGABYTE / 4)],
  ['frames', 'at f (x.ts:1:1)\n    '.repeat(MEGABYTE / 20)],
  ['line ends', '\r\n'.repeat(MEGABYTE / 2)],
  ['astral characters', '\u{1f4ee}'.repeat(MEGABYTE / 4)],
]

const PLAIN = 'its consumer answered with five hundred and nothing else. '.repeat(MEGABYTE / 57)

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await act()
  return performance.now() - startedMs
}

offices('an error text', (desk) => {
  it.each(BAITS)('of %s is captured and cut', async (_, text) => {
    const body = JSON.stringify(
      captureBody({ errorMessage: text, errorStack: text, errorClass: text.slice(0, 1000) }),
    )
    const plainMs = await timed(() => desk.capture({ errorMessage: PLAIN, errorStack: PLAIN }))
    let letter: Listed | undefined
    const tookMs = await timed(async () => {
      letter = await desk.ok<Listed>('POST', '/api/dlq', { body }, 201)
    })
    if (letter === undefined) expect.fail('nothing was captured')
    // A catastrophe takes minutes. How busy the machine is, a text of the same size tells.
    expect(tookMs).toBeLessThan(10_000 + 20 * plainMs)
    const { errorMessage } = await desk.letter(letter)
    const bytes = Buffer.byteLength(errorMessage)
    expect(bytes).toBeLessThanOrEqual(KIB_32 + MARK_BYTES)
    expect(bytes).toBeGreaterThan(KIB_32 - MARK_BYTES)
    // What is kept is the beginning, whole characters only, and what follows it is not from the text.
    expect(errorMessage.isWellFormed()).toBe(true)
    expect(text.startsWith(errorMessage)).toBe(false)
    expect(errorMessage.slice(0, 8_000)).toBe(text.slice(0, 8_000))
    expect(letter.errorMessage).toBe(errorMessage)
  })

  it('of exactly 32 KiB is kept as it is', async () => {
    const errorMessage = `${'y'.repeat(KIB_32 - 1)}!`
    expect((await desk.letter(await desk.capture({ errorMessage }))).errorMessage).toBe(errorMessage)
  })

  it('that is one byte longer has a mark', async () => {
    const errorMessage = `${'y'.repeat(KIB_32)}!`
    const { errorMessage: kept } = await desk.letter(await desk.capture({ errorMessage }))
    expect(kept).not.toBe(errorMessage)
    expect(kept).not.toMatch(/^y*!?$/)
  })

  it('with control characters is captured; what can be kept is kept', async () => {
    const errorMessage = 'a\u0001\u001b[31mred\u001b[0m\u007f\u0085\u2028\u202e\ufeffz\tt\nn'
    expect((await desk.letter(await desk.capture({ errorMessage }))).errorMessage).toBe(errorMessage)
  })

  it('with NUL is captured, the rest of it intact', async () => {
    const nul = 'before\u0000after'
    const letter = await desk.capture({
      errorMessage: nul,
      errorClass: 'Nul\u0000Error',
      errorStack: 'at\u0000x',
    })
    const { errorMessage, errorClass } = await desk.letter(letter)
    expect(errorMessage).toMatch(/^before.?after$/s)
    expect(errorClass).toMatch(/^Nul.?Error$/s)
  })

  it('with half characters is captured', async () => {
    const body = `{"engine":"hmac","originalMessage":"x","errorMessage":"half \\ud800 done","sourceId":"${unique('s')}"}`
    const letter = await desk.ok<Listed>('POST', '/api/dlq', { body }, 201)
    expect((await desk.letter(letter)).errorMessage).toMatch(/^half .* done$/)
  })

  it('that is empty is captured, or refused by name', async () => {
    const reply = await desk.api('POST', '/api/dlq', { body: captureBody({ errorMessage: '' }) })
    expect([201, 400]).toContain(reply.status)
    if (reply.status === 400) expect(reply.error?.message).toContain('errorMessage')
  })

  it('never cuts the payload', async () => {
    const originalMessage = 'p'.repeat(2_000_000)
    const letter = await desk.capture({ originalMessage })
    expect((await desk.letter(letter)).originalMessage).toBe(originalMessage)
  })

  it('of a history entry is kept or cut, never a failure', async () => {
    for (const error of ['x'.repeat(900_000), 'nul \u0000 in it', 'half \u0001']) {
      const body = { engine: 'hmac', operation: 'rotate', status: 'Failed', durationMs: 1, error }
      await desk.ok('POST', '/api/history', { body }, 201)
    }
  })
})
