/** Contract 3 and 4, `PATCH /api/dlq/{engine}/{rowKey}`: which status may follow which. */
import { describe, expect, it } from 'vitest'
import { type Desk, type Listed, micros, offices, pathTo, unique } from './bed.ts'

type Status = Listed['status']
const STATUSES: readonly Status[] = ['Pending', 'Resolved', 'Expired']

/** A letter that has the status. */
async function letterThatIs(desk: Desk, status: Status): Promise<Listed> {
  const letter = await desk.capture({ instanceId: unique('instance') })
  if (status === 'Resolved') await desk.patch(letter, 'Resolved', 'discarded')
  if (status === 'Expired') await desk.patch(letter, 'Expired', 'let go')
  return letter
}

const ALLOWED: readonly string[] = [
  'Pending Resolved',
  'Pending Expired',
  'Resolved Pending',
  'Expired Pending',
]

offices('a change of status', (desk) => {
  describe.each(STATUSES)('from %s', (from) => {
    it.each(STATUSES)('to %s', async (to) => {
      const letter = await letterThatIs(desk, from)
      const before = await desk.letter(letter)
      const counts = await desk.counts()
      const call = { body: { status: to, resolutionNotes: 'because' } }
      if (ALLOWED.includes(`${from} ${to}`)) {
        await desk.ok('PATCH', pathTo(letter), call)
        expect((await desk.letter(letter)).status).toBe(to)
      } else {
        const error = await desk.refuses('PATCH', pathTo(letter), call, 409, from)
        expect(error.message).toContain(from)
        expect(await desk.letter(letter)).toEqual(before)
        expect(await desk.counts()).toEqual(counts)
      }
    })
  })

  it('to Resolved is a discard: with words, time and author', async () => {
    const letter = await letterThatIs(desk, 'Pending')
    await desk.patch(letter, 'Resolved', 'customer left')
    expect(await desk.letter(letter)).toMatchObject({
      status: 'Resolved',
      resolutionNotes: 'customer left',
      resolvedAtUtc: micros(desk.clock.now),
      resolvedBy: expect.stringMatching(/./),
    })
  })

  it.each([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['blank', ' \n\t'],
  ])('to Resolved needs no words: notes may be %s', async (_, resolutionNotes) => {
    const letter = await letterThatIs(desk, 'Pending')
    await desk.ok('PATCH', pathTo(letter), { body: { status: 'Resolved', resolutionNotes } })
    expect(await desk.letter(letter)).toMatchObject({
      status: 'Resolved',
      resolution: 'discard',
      resolutionNotes: null,
    })
  })

  it('takes 4,000 characters of words and no more, in any script', async () => {
    const most = '\u00e4'.repeat(4000)
    const letter = await letterThatIs(desk, 'Pending')
    const tooMuch = { body: { status: 'Resolved', resolutionNotes: `${most}x` } }
    await desk.refuses('PATCH', pathTo(letter), tooMuch, 400, 'resolutionNotes')
    await desk.patch(letter, 'Resolved', most)
    expect((await desk.letter(letter)).resolutionNotes).toBe(most)
  })

  it('keeps odd characters in words, or says which it cannot keep', async () => {
    const letter = await letterThatIs(desk, 'Pending')
    await desk.patch(letter, 'Resolved', 'it\'s \u{1f4ee} "quoted" \\ \n\t; DROP TABLE letters --')
    expect((await desk.letter(letter)).resolutionNotes).toBe(
      'it\'s \u{1f4ee} "quoted" \\ \n\t; DROP TABLE letters --',
    )
    const other = await letterThatIs(desk, 'Pending')
    const reply = await desk.api('PATCH', pathTo(other), {
      body: { status: 'Resolved', resolutionNotes: 'a\u0000b' },
    })
    expect([200, 400]).toContain(reply.status)
  })

  it('takes no other types', async () => {
    const letter = await letterThatIs(desk, 'Pending')
    for (const resolutionNotes of [5, {}, ['x'], true]) {
      const call = { body: { status: 'Resolved', resolutionNotes } }
      await desk.refuses('PATCH', pathTo(letter), call, 400, 'resolutionNotes')
    }
    for (const status of [undefined, null, 5, 'pending', 'Done', '', ['Resolved']]) {
      const call = { body: { status, resolutionNotes: 'x' } }
      await desk.refuses('PATCH', pathTo(letter), call, 400, 'status')
    }
    await desk.refuses(
      'PATCH',
      pathTo(letter),
      { body: { status: 'Done' } },
      400,
      'Pending',
      'Resolved',
      'Expired',
    )
    await desk.refuses('PATCH', pathTo(letter), { body: '{' }, 400)
    await desk.refuses('PATCH', pathTo(letter), {}, 400)
    expect((await desk.letter(letter)).status).toBe('Pending')
  })

  it('over 1 MiB of body is 413', async () => {
    const letter = await letterThatIs(desk, 'Pending')
    const body = JSON.stringify({ status: 'Resolved', resolutionNotes: 'x' }).padEnd(1_048_577, ' ')
    await desk.refuses('PATCH', pathTo(letter), { body }, 413)
    await desk.ok('PATCH', pathTo(letter), { body: body.slice(0, 1_048_576) })
  })

  it('back to Pending leaves no resolution behind', async () => {
    for (const from of ['Resolved', 'Expired'] as const) {
      const letter = await letterThatIs(desk, from)
      await desk.patch(letter, 'Pending')
      const { resolvedAtUtc, resolvedBy, status } = await desk.letter(letter)
      expect({ status, at: resolvedAtUtc ?? null, by: resolvedBy ?? null }).toEqual({
        status: 'Pending',
        at: null,
        by: null,
      })
    }
  })

  it('by ten at once happens once', async () => {
    const letter = await letterThatIs(desk, 'Pending')
    const call = { body: { status: 'Resolved', resolutionNotes: 'mine' } }
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => desk.api('PATCH', pathTo(letter), call)),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)])
    expect(await desk.acts(letter)).toEqual(['capture', 'discard'])
  })

  it('is in history once, with its author and words', async () => {
    const letter = await letterThatIs(desk, 'Resolved')
    const { items } = await desk.history({ instanceId: letter.instanceId })
    expect(items.map(({ operation }) => operation).sort()).toEqual(['capture', 'discard'])
    expect(items.every(({ status }) => status === 'Succeeded')).toBe(true)
  })
})
