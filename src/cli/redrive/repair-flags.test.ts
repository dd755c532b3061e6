import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { processTerminal } from '../../terminal/terminal.ts'
import { type PlanFlags, repairOf } from './plan-flags.ts'

const PATCH = [{ op: 'remove', path: '/a' }]

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bartleby-repair-'))
  await writeFile(join(folder, 'patch.json'), JSON.stringify(PATCH))
  await writeFile(join(folder, 'fix.jsonata'), '$merge([$, { "a": 1 }])\n')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const repair = (flags: PlanFlags, stdin = '') =>
  repairOf(flags, { ...processTerminal, stdin: Readable.from([Buffer.from(stdin)]) })

describe('the repair that flags describe', () => {
  it('is none without them', async () => {
    expect(await repair({})).toBeUndefined()
  })

  it('has a patch of the command line, of a file or of stdin', async () => {
    expect(await repair({ patch: ` ${JSON.stringify(PATCH)}` })).toEqual({ patch: PATCH })
    expect(await repair({ patch: join(folder, 'patch.json') })).toEqual({ patch: PATCH })
    expect(await repair({ patch: '-' }, JSON.stringify(PATCH))).toEqual({ patch: PATCH })
  })

  it('keeps all digits of a patch', async () => {
    const patch = '[{"op":"add","path":"/n","value":12345678901234567890.10}]'
    expect(JSON.stringify(await repair({ patch }))).toBe(`{"patch":${patch}}`)
  })

  it('has a mapping: a file where there is one of that name, else the expression itself', async () => {
    expect(await repair({ map: '$merge([$])' })).toEqual({ mapping: '$merge([$])' })
    expect(await repair({ map: join(folder, 'fix.jsonata') })).toEqual({ mapping: '$merge([$, { "a": 1 }])' })
    expect(await repair({ map: '-' }, '$')).toEqual({ mapping: '$' })
  })

  it('has headers', async () => {
    expect(await repair({ setHeader: { kind: 'v2' }, removeHeader: ['reference'] })).toEqual({
      headers: { set: { kind: 'v2' }, remove: ['reference'] },
    })
  })

  it.each<[PlanFlags, string]>([
    [{ patch: '[', map: '$' }, '--patch and --map exclude each other'],
    [{ patch: '[1' }, '--patch is no JSON'],
    [{ patch: '/nowhere/patch.json' }, '--patch cannot be read'],
  ])('refuses %j', async (flags, message) => {
    await expect(repair(flags)).rejects.toThrow(message)
  })
})
