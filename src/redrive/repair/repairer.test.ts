import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { SourceName } from '../../letters/kinds.ts'
import { SOURCES } from '../../sources/index.ts'
import type { RepairResult } from './apply-recipe.ts'
import { parseRecipe } from './recipe.ts'
import { type Repairable, Repairer } from './repairer.ts'

const repairer = new Repairer()
afterAll(() => repairer.close())

const letter = (payload: string | Uint8Array, source: SourceName = 'queues'): Repairable => ({
  source,
  encoding: 'json',
  kind: 'order',
  reference: 'r1',
  payload: Buffer.from(payload),
})

/** What is said of a result in these tests. */
function shown(result: RepairResult | undefined): unknown {
  if (result === undefined || !result.ok) return result?.reason
  const { payload, headers } = result.repaired
  return { payload: payload === null ? null : Buffer.from(payload).toString(), headers }
}

async function repair(recipe: unknown, ...letters: readonly Repairable[]): Promise<readonly unknown[]> {
  return (await repairer.repair(parseRecipe(recipe), letters)).map(shown)
}

describe('letters that are repaired', () => {
  it('get one result each, in their order', async () => {
    const recipe = {
      patch: [
        { op: 'test', path: '/status', value: 'open' },
        { op: 'replace', path: '/customer/id', value: 7 },
      ],
    }
    const letters = [
      letter('{"status":"open", "customer":{"id":1.0}}'),
      letter('{"status":"open"}'),
      letter('{"status":"shut","customer":{"id":1}}'),
      letter('{"status":"open","customer":{"id":7}}'),
      letter('no JSON'),
      letter(Uint8Array.of(0x22, 0xff, 0x22)),
      letter(''),
      letter(Buffer.alloc(16 * 1_048_576 + 1, ' ')),
    ]
    expect(await repair(recipe, ...letters)).toEqual([
      { payload: '{"status":"open", "customer":{"id":7}}', headers: {} },
      'patch[1] (replace /customer/id): there is nothing at /customer',
      'patch[0] (test /status): the value there is another',
      { payload: null, headers: {} },
      'the payload is no JSON',
      'the payload is no UTF-8, and no JSON',
      'the payload is empty, and no JSON',
      'the payload is larger than 16 MiB',
    ])
  })

  it('get other headers, whatever their payload', async () => {
    const recipe = { headers: { set: { kind: 'order', encoding: 'text' }, remove: ['reference'] } }
    expect(
      await repair(recipe, letter('no JSON'), { ...letter('{}'), reference: '', encoding: 'text' }),
    ).toEqual([
      { payload: null, headers: { encoding: 'text', reference: '' } },
      { payload: null, headers: {} },
    ])
  })

  it('are not repaired where their source has no place for it', async () => {
    const patch = [{ op: 'add', path: '/a', value: 1 }]
    const of = (recipe: unknown) => repair(recipe, ...SOURCES.map(({ name }) => letter('{}', name)))
    const done = { payload: '{"a":1}', headers: {} }
    const webhooks = 'letters of webhooks cannot be repaired: each consumer gets what was broadcast'
    // queues, engines, outbox, webhooks, kafka, azure, http
    expect(await of({ patch })).toEqual([done, done, done, webhooks, done, done, done])
    const both = { payload: '{"a":1}', headers: { kind: 'x' } }
    const none = (source: string) => `letters of ${source} have no headers that a repair could change`
    expect(await of({ patch, headers: { set: { kind: 'x' } } })).toEqual([
      both,
      both,
      none('outbox'),
      webhooks,
      none('kafka'),
      none('azure'),
      both,
    ])
  })

  it('are not worked on in the thread of the server', async () => {
    // Half a second of work or more.
    const lines = JSON.stringify(Array.from({ length: 50_000 }, (_, i) => ({ sku: `sku-${i}`, price: i })))
    const patch = [{ op: 'test', path: '/49999/price', value: 49_999 }]
    const letters = Array.from({ length: 10 }, () => letter(lines))
    await repair({ patch }, ...letters)
    const recipe = parseRecipe({ patch })
    const before = process.threadCpuUsage()
    const trials = await repairer.repair(recipe, letters, { keepsPayloads: false })
    const { user, system } = process.threadCpuUsage(before)
    const workMs = trials.reduce((sum, trial) => sum + trial.workMs, 0)
    expect(trials.every(({ ok }) => ok)).toBe(true)
    expect((user + system) / 1_000).toBeLessThan(workMs)
  })

  it('get no more than a second each, whatever their mapping does', async () => {
    const mapping = `
      act = "loop" ? ( $f := function($n){ $f($n + 1) }; $f(1) )
      : act = "backtrack" ? $match($pad("", 64, "a") & "!", /^(a+)+$/)
      : act = "hang" ? { "then": /a/ }
      : { "act": act, "done": true }`
    const acts = ['loop', 'fine', 'backtrack', 'fine', 'hang', 'fine']
    const tooLong = 'the repair took longer than 1 s'
    const done = { payload: '{"act":"fine","done":true}', headers: {} }
    expect(await repair({ mapping }, ...acts.map((act) => letter(JSON.stringify({ act }))))).toEqual([
      tooLong,
      done,
      tooLong,
      done,
      tooLong,
      done,
    ])
  })

  it('are given back before all of them are done when their time is over, one at least', async () => {
    const recipe = parseRecipe({ patch: [{ op: 'remove', path: '/a' }] })
    const letters = Array.from({ length: 100 }, () => letter('{"a":1}'))
    expect(await repairer.repair(recipe, letters, { forMs: -1 })).toHaveLength(1)
    expect(await repairer.repair(recipe, letters, { forMs: 60_000 })).toHaveLength(100)
  })

  it('are refused for memory one by one: those beside them are repaired', async () => {
    const mapping = 'act = "bomb" ? $length($pad("", 500000000)) : { "act": act, "done": true }'
    const acts = ['fine', 'bomb', 'fine', 'bomb', 'fine']
    const results = await repair({ mapping }, ...acts.map((act) => letter(JSON.stringify({ act }))))
    const done = { payload: '{"act":"fine","done":true}', headers: {} }
    const bomb = expect.stringMatching(/^the repair (?:used too much memory|took longer than 1 s)$/)
    expect(results).toEqual([done, bomb, done, bomb, done])
  })

  it.skipIf(process.platform !== 'linux')(
    'leave no core of a gigabyte behind, where cores are kept',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'bartleby-cores-'))
      const code = `
      import { Repairer } from '${new URL('./repairer.ts', import.meta.url)}'
      import { parseRecipe } from '${new URL('./recipe.ts', import.meta.url)}'
      const repairer = new Repairer()
      const letter = { source: 'queues', encoding: 'json', kind: '', reference: '', payload: Buffer.from('{}') }
      await repairer.repair(parseRecipe({ mapping: '$length($pad("", 500000000))' }), [letter])
      await repairer.close()`
      try {
        // Who may not raise the limit keeps no cores either.
        const command = `ulimit -c unlimited; exec '${process.execPath}' --input-type=module --eval "$0"`
        const program = spawn('sh', ['-c', command, code], {
          cwd: folder,
          stdio: ['ignore', 'ignore', 'inherit'],
        })
        expect(await once(program, 'exit')).toEqual([0, null])
        const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size)
        for (const size of await Promise.all(sizes)) expect(size).toBeLessThan(1_048_576)
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  )

  it('are tried out without their payloads, and with what they cost', async () => {
    const recipe = parseRecipe({ patch: [{ op: 'copy', from: '/a', path: '/b' }] })
    const trials = await repairer.repair(recipe, [letter('{"a":"0123456789"}'), letter('{}')], {
      keepsPayloads: false,
    })
    const workMs = expect.any(Number)
    expect(trials).toEqual([
      { ok: true, repaired: { payload: null, headers: {} }, workMs, growthBytes: 17 },
      { ok: false, reason: 'patch[0] (copy /b): there is nothing at /a', workMs, growthBytes: 0 },
    ])
  })
})
