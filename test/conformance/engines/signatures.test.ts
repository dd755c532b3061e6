/** `GET /api/signatures`: letters grouped by their errors. */
import { expect, it } from 'vitest'
import { seconds } from '../../world/time.ts'
import { type Desk, micros, offices, only, type Page, TIME, unique } from './bed.ts'

interface Group {
  readonly signature: string
  readonly open: number
  readonly total: number
  readonly firstSeenAtUtc: string
  readonly lastSeenAtUtc: string
  readonly sources: readonly string[]
}

async function groups(desk: Desk): Promise<Group[]> {
  const all: Group[] = []
  let continuationToken: string | undefined
  do {
    const query = { limit: 100, continuationToken }
    const page: Page<Group> = await desk.ok('GET', '/api/signatures', { query })
    all.push(...page.items)
    continuationToken = page.continuationToken ?? undefined
  } while (continuationToken !== undefined)
  return all
}

const group = async (desk: Desk, signature: string): Promise<Group> =>
  only((await groups(desk)).filter((each) => each.signature === signature))

offices('signatures', (desk) => {
  it('put errors together that differ in numbers, ids, quotes, paths and urls', async () => {
    const errorClass = unique('VaultError')
    const texts = [
      "timeout after 1500 ms reading 'alpha' from /var/data/7/a.json, see https://x.test/a?b=1 (3f2504e0-4f89-11d3-9a0c-0305e82c3301, 0xdeadbeef)",
      "timeout after 29 ms reading 'beta gamma' from /home/u/b.json, see https://y.test/ (a3f5b1c2-1111-4222-8333-444455556666, 0xcafe0001)",
    ]
    const letters = await Promise.all(texts.map((errorMessage) => desk.capture({ errorClass, errorMessage })))
    expect(new Set(letters.map(({ signature }) => signature)).size).toBe(1)
  })

  it('keep errors apart that differ in class or in words', async () => {
    const errorClass = unique('A')
    const one = await desk.capture({ errorClass, errorMessage: 'connection refused' })
    const two = await desk.capture({ errorClass, errorMessage: 'certificate lapsed' })
    const three = await desk.capture({ errorClass: unique('B'), errorMessage: 'connection refused' })
    expect(new Set([one, two, three].map(({ signature }) => signature)).size).toBe(3)
  })

  it('keep errors apart that come from another line of the application', async () => {
    const errorClass = unique('C')
    const stack = (frame: string) => `Error: x\n    at ${frame}\n    at main (/app/src/main.ts:1:1)`
    const fields = { errorClass, errorMessage: 'x' }
    const one = await desk.capture({ ...fields, errorStack: stack('rotate (/app/src/rotate.ts:10:5)') })
    const two = await desk.capture({ ...fields, errorStack: stack('notify (/app/src/notify.ts:99:5)') })
    expect(one.signature).not.toBe(two.signature)
  })

  it('name the version of their algorithm', async () => {
    expect((await desk.capture()).signature).toMatch(/^\d+-[0-9a-f]+$/)
  })

  it('show what is open, what there was, since when and from where', async () => {
    const errorClass = unique('GroupError')
    const queue = await desk.queues.queue()
    const fields = { errorClass, errorMessage: 'group me', originalQueue: queue }
    const first = await desk.capture(fields)
    const startedAt = micros(desk.clock.now)
    await desk.clock.advance(seconds(5))
    const second = await desk.capture(fields)
    const third = await desk.capture(fields)
    expect(await group(desk, first.signature)).toMatchObject({
      open: 3,
      total: 3,
      firstSeenAtUtc: startedAt,
      lastSeenAtUtc: micros(desk.clock.now),
      sources: [first.source],
    })
    await desk.patch(first, 'Resolved', 'x')
    await desk.retry(second)
    expect(await group(desk, first.signature)).toMatchObject({ open: 1, total: 3 })
    await desk.patch(first, 'Pending')
    await desk.patch(third, 'Expired')
    expect(await group(desk, first.signature)).toMatchObject({ open: 1, total: 3 })
    const shown = JSON.stringify(await group(desk, first.signature))
    expect(shown).toContain('group me')
    expect(shown).toContain(errorClass)
  })

  it('find their letters', async () => {
    const errorClass = unique('FindError')
    const letters = await Promise.all(Array.from({ length: 5 }, () => desk.capture({ errorClass })))
    const [{ signature } = expect.fail('five were made')] = letters
    const found = await desk.walk({ signature, limit: 2 })
    expect(found.map(({ rowKey }) => rowKey).sort()).toEqual(letters.map(({ rowKey }) => rowKey).sort())
  })

  it('of a letter that dies of another error change with it', async () => {
    const queue = await desk.queues.queue()
    const letter = await desk.capture({ originalQueue: queue, errorClass: unique('Before') })
    await desk.retry(letter)
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    const { signature } = await desk.letter(letter)
    expect(signature).not.toBe(letter.signature)
    expect((await desk.walk({ signature: letter.signature, status: 'Pending' })).length).toBe(0)
    expect((await groups(desk)).find((each) => each.signature === letter.signature)?.open ?? 0).toBe(0)
    expect((await desk.walk({ signature })).map(({ rowKey }) => rowKey)).toContain(letter.rowKey)
  })

  it('have times with microseconds', async () => {
    for (const { firstSeenAtUtc, lastSeenAtUtc } of await groups(desk)) {
      expect(firstSeenAtUtc).toMatch(TIME)
      expect(lastSeenAtUtc).toMatch(TIME)
      expect(firstSeenAtUtc <= lastSeenAtUtc).toBe(true)
    }
  })
})
