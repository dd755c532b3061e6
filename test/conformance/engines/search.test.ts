/** `GET /api/dlq?q=…`: letters by text in their error, reference, headers and payload. */
import { describe, expect, it } from 'vitest'
import { type Desk, offices, type Query, unique } from './bed.ts'

/** Waits until the text of new letters can be found; then gives what is found. */
async function found(desk: Desk, query: Query, count: number): Promise<string[]> {
  await expect.poll(async () => (await desk.walk(query)).length).toBe(count)
  return (await desk.walk(query)).map(({ engine, rowKey }) => `${engine} ${rowKey}`)
}

offices('the search q', (desk) => {
  it('finds text in the error, the payload, the headers and the reference', async () => {
    const { queue } = await desk.pair()
    const word = unique('needle')
    const inError = await desk.capture({ errorMessage: `there is a ${word}a in it` })
    const inPayload = await desk.capture({ originalMessage: `{"name":"${word}b"}` })
    const inHeaders = await desk.capture({ headers: { 'x-find': `${word}c` } })
    const inReference = await desk.death(queue, 'x', { reference: `order ${word}d` })
    expect(await found(desk, { q: `${word}a` }, 1)).toEqual([`hmac ${inError.rowKey}`])
    expect(await found(desk, { q: `${word}b` }, 1)).toEqual([`hmac ${inPayload.rowKey}`])
    expect(await found(desk, { q: `${word}c` }, 1)).toEqual([`hmac ${inHeaders.rowKey}`])
    expect(await found(desk, { q: `${word}d` }, 1)).toEqual([`queues ${inReference.rowKey}`])
    expect(await found(desk, { q: word }, 4)).toHaveLength(4)
  })

  it('finds parts of words, and text with blanks', async () => {
    const word = unique('haystack')
    await desk.capture({ errorMessage: `the ${word}x of the barn` })
    await found(desk, { q: word.slice(2) }, 1)
    await found(desk, { q: `${word}x of the` }, 1)
    await found(desk, { q: `${word}x in the` }, 0)
  })

  it('goes with the other filters and in pages', async () => {
    const word = unique('straw')
    for (let n = 0; n < 7; n++) {
      await desk.capture({
        engine: n % 2 ? 'tls' : 'hmac',
        errorMessage: `${word} ${n}`,
        instanceId: `${word}-${n % 3}`,
      })
    }
    await found(desk, { q: word }, 7)
    await found(desk, { q: word, limit: 2 }, 7)
    await found(desk, { q: word, engine: 'tls' }, 3)
    await found(desk, { q: word, engine: 'tls', instanceId: `${word}-0` }, 1)
    await found(desk, { q: word, status: 'Resolved' }, 0)
    const keys = await found(desk, { q: word, limit: 3 }, 7)
    expect(new Set(keys).size).toBe(7)
  })

  it('finds a letter by the error it has now', async () => {
    const queue = await desk.queues.queue()
    const word = unique('then')
    const letter = await desk.capture({ originalQueue: queue, errorMessage: `${word} it was` })
    await found(desk, { q: word }, 1)
    await desk.patch(letter, 'Resolved', 'gone')
    await found(desk, { q: word, status: 'Resolved' }, 1)
    await found(desk, { q: word, status: 'Pending' }, 0)
  })

  describe('takes any text as text', () => {
    const odd = [
      '100% sure_ly',
      'a"b',
      "it's",
      'x*y',
      '(a AND b)',
      'NOT near',
      '\\back\\slash',
      'a:b^c',
      '--',
      '\u00fcber',
      '\u{1f4ee}\u{1f4ee}\u{1f4ee}',
      '{"a":1}',
    ]
    it.each(odd)('%s', async (text) => {
      const mark = unique('odd')
      await desk.capture({ errorMessage: `${mark} ${text} end` })
      await desk.capture({ errorMessage: `${mark} something else end` })
      await found(desk, { q: `${mark} ${text} end` }, 1)
    })

    it.each(['%', '_', '*', '"', "'", '%%%', '___', '"""', '\\', 'a', 'ab', ' ', '   ', 'OR', 'AND OR NOT'])(
      'never fails: %j',
      async (q) => {
        const { status } = await desk.api('GET', '/api/dlq', { query: { q, limit: 5 } })
        expect([200, 400]).toContain(status)
      },
    )

    it('refuses what is too long by name, or finds nothing', async () => {
      const reply = await desk.api('GET', '/api/dlq', { query: { q: 'z'.repeat(5000) } })
      expect([200, 400]).toContain(reply.status)
      if (reply.status === 400) expect(JSON.stringify(reply.error)).toContain('q')
    })
  })

  it('does not find what is not text', async () => {
    const letter = await desk.capture({
      originalMessage: 'AP8=',
      originalMessageEncoding: 'base64',
      errorMessage: unique('bin'),
    })
    await found(desk, { q: letter.errorMessage }, 1)
  })
})
