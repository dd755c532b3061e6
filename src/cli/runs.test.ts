/** `bartleby runs` against a real server. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ServerHere, startServer } from '../../test/world/server.ts'
import { bartleby } from '../../test/world/terminal-double.ts'
import { LetterClient, type RunItem } from '../client/index.ts'

let server: ServerHere
beforeAll(async () => {
  server = await startServer({ store: 'sqlite::memory:', testApi: false })
})
afterAll(() => server?.stop())

const runs = (...args: string[]) => bartleby(['runs', ...args], { env: { BARTLEBY_URL: server.url } })

it('shows what was done', async () => {
  expect(await runs()).toMatchObject({ code: 0, out: 'there are no runs' })
  const letters = new LetterClient({ url: server.url })
  await letters.capture({
    engine: 'hmac',
    sourceId: 'one',
    originalMessage: '{}',
    errorMessage: 'no',
    lastFailureAtUtc: new Date(Date.now() - 3 * 86_400_000),
  })
  expect(await letters.expireOlder({ olderThanDays: 1, engine: 'hmac' })).toBe(1)
  const { code, out } = await runs('list', '--kind', 'expire')
  expect([code, out]).toEqual([0, expect.stringMatching(/expire +done +1 .*letters of engine hmac/)])
  const [run] = JSON.parse((await runs('list', '--json')).out) as RunItem[]
  const id = run?.id ?? ''
  expect((await runs('show', id)).out).toMatch(/^run {6}.*\nkind {5}expire\nstate {4}done\n/)
  expect(JSON.parse((await runs('show', id, '--json')).out)).toEqual(run)
  expect(await runs('list', '--state', 'paused')).toMatchObject({ code: 0, out: 'there are no runs' })
})

it('says what cannot be', async () => {
  expect(await runs('show', 'nothing')).toMatchObject({
    code: 3,
    err: expect.stringContaining('run does not'),
  })
  expect(await runs('list', '--state', 'asleep')).toMatchObject({ code: 2 })
  const [run] = JSON.parse((await runs('list', '--json')).out) as RunItem[]
  for (const verb of ['pause', 'resume', 'cancel'])
    expect(await runs(verb, run?.id ?? '')).toMatchObject({
      code: 1,
      err: expect.stringContaining('it is done'),
    })
})
