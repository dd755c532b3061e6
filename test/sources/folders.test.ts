/**
 * A source that somebody adds with one line is everywhere where sources are: configuration, lists, counts, console, command line,
 * redrives, verify, metrics, demo.
 */
import { writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { RunningServer } from '../../src/http/serve.ts'
import type * as List from '../../src/sources/index.ts'
import { bartleby } from '../world/terminal-double.ts'

const LIST = '../../src/sources/index.ts'
const handler = { isBroken: true }

/** The product with one line more in the list. It is loaded anew, and so it is again for the tests that come after these. */
async function productWithFolders() {
  vi.resetModules()
  vi.doMock(LIST, async (original) => {
    const list = await original<typeof List>()
    const { declareKind } = await import('../../src/letters/kinds.ts')
    const { folderSource } = await import('./folders.ts')
    const folders = folderSource(() => {
      if (handler.isBroken) throw new TypeError('no such column: tax')
    })
    declareKind({ ...folders.kind, name: folders.name })
    return { ...list, SOURCES: [...list.SOURCES, folders] }
  })
  const { loadConfig } = await import('../../src/config/index.ts')
  const { serve } = await import('../../src/http/serve.ts')
  const { serveDemo } = await import('../../src/demo/serve-demo.ts')
  return { loadConfig, serve, serveDemo }
}

interface Told {
  readonly items: readonly object[]
  readonly sources: readonly object[]
  readonly navigation: readonly object[]
  readonly state: string
  readonly checks: readonly { readonly id: string; readonly holds: boolean }[]
}

describe('a source that is added with one line', () => {
  let home: string
  let path: string
  let server: RunningServer
  let product: Awaited<ReturnType<typeof productWithFolders>>

  // Each test says what it expects of the part that it asks for.
  const get = async (address: string) =>
    (await (await fetch(new URL(address, server.url))).json()) as { readonly data: Told }
  const command = (...args: readonly string[]) => bartleby(args, { env: { BARTLEBY_URL: server.url } })

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'bartleby-folder-'))
    path = join(home, 'inbox')
    await mkdir(path)
    for (const name of ['one', 'two', 'three']) await writeFile(join(path, name), `{"file":"${name}"}`)
    const file = join(home, 'bartleby.yaml')
    await writeFile(file, 'folders: { path: ./inbox }\nlog: { level: silent }\n')
    product = await productWithFolders()
    const flags = { port: 0, store: 'sqlite::memory:', config: file }
    server = await product.serve(product.loadConfig({ env: {}, flags }))
    await vi.waitFor(async () => expect((await get('/api/dlq?source=folders')).data.items).toHaveLength(3))
  })
  afterAll(async () => {
    await server?.stop()
    vi.doUnmock(LIST)
    vi.resetModules()
    await rm(home, { recursive: true })
  })

  it('has a section of the configuration, whose mistakes are told', () => {
    const flags = { config: join(home, 'wrong.yaml') }
    writeFileSync(flags.config, 'folders: { everySecond: 3 }\n')
    expect(() => product.loadConfig({ env: {}, flags })).toThrow(
      "folders.everySecond: unknown key; did you mean 'everySeconds'?",
    )
  })

  it('has its letters in lists, groups, counts and the overview', async () => {
    const { items } = (await get('/api/dlq?source=folders')).data
    expect(items[0]).toMatchObject({ engine: 'folders', status: 'Pending', errorClass: 'TypeError' })
    expect((await get('/api/signatures?source=folders')).data.items).toHaveLength(1)
    expect((await get('/api/counts?by=source')).data.items).toContainEqual({ source: 'folders', count: 3 })
    expect((await get('/api/overview')).data.sources).toContainEqual(
      expect.objectContaining({ source: 'folders', pending: 3, health: 'ok' }),
    )
  })

  it('is shown by the console, health and metrics', async () => {
    expect((await get('/api/session')).data.navigation).toContainEqual(
      expect.objectContaining({ name: 'folders', title: 'Folders' }),
    )
    const metrics = await (await fetch(new URL('/metrics', server.url))).text()
    expect(metrics).toContain('folders_waiting 0\n')
    expect(metrics).toMatch(/bartleby_letters\{source="folders",[^}]*status="Pending"\} 3\n/)
    expect(metrics).toMatch(/round="folders"/)
  })

  it('is asked for at the command line, and sent back by a redrive', async () => {
    const list = await command('letters', 'list', 'source:folders')
    expect(list.code).toBe(0)
    expect(list.out).toContain('no such column: tax')
    handler.isBroken = false
    const plan = await command('redrive', 'plan', 'source:folders status:pending', '--json')
    const { id } = JSON.parse(plan.out)
    expect((await command('redrive', 'start', id, '--watch')).code).toBe(0)
    await expect
      .poll(async () => (await get('/api/dlq?source=folders&outcome=confirmed')).data.items.length)
      .toBe(3)
    expect((await readdir(path)).toSorted()).toEqual(['.dead', '.given-up'])
  })

  it('keeps the promises that verify checks', async () => {
    await fetch(new URL('/api/verify', server.url), { method: 'POST' })
    await expect.poll(async () => (await get('/api/verify')).data.state).toBe('done')
    const { checks } = (await get('/api/verify')).data
    expect(checks.filter(({ holds }) => !holds)).toEqual([])
    expect(checks).toContainEqual(expect.objectContaining({ id: 'F1', findings: 0 }))
  })

  it('has its part in the demo', async () => {
    handler.isBroken = true
    // Where its folder is made.
    vi.stubEnv('TMPDIR', home)
    const terms = { storeIsGiven: false, logLevelIsGiven: false, say: () => {}, pastHours: 22 }
    const demo = await product.serveDemo(product.loadConfig({ env: {}, flags: { port: 0 } }), terms)
    try {
      const { totals } = await demo.office.letters.numbers.counts({ source: 'folders' })
      expect(totals.Pending + totals.Resolved + totals.Expired).toBeGreaterThan(0)
    } finally {
      await demo.stop()
      vi.unstubAllEnvs()
    }
  })
})
