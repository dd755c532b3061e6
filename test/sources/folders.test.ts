/** A source that somebody adds with one line is everywhere where sources are: list, counts, console, command line, redrives, verify, metrics. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import { type RunningServer, serve } from '../../src/http/serve.ts'
import { sourceNames } from '../../src/letters/kinds.ts'
import { Office } from '../../src/office.ts'
import type { OfficeParts } from '../../src/sources/source-module.ts'
import { bartleby } from '../harness/terminal-double.ts'
import { folderSource } from './folders.ts'

interface Told {
  readonly items: readonly object[]
  readonly sources: readonly object[]
  readonly navigation: readonly object[]
  readonly state: string
  readonly checks: readonly { readonly holds: boolean }[]
}

describe('a source that is added with one line', () => {
  let path: string
  let isBroken = true
  let server: RunningServer

  // Each test says what it expects of the part that it asks for.
  const get = async (address: string) =>
    (await (await fetch(new URL(address, server.url))).json()) as { readonly data: Told }
  const command = (...args: readonly string[]) => bartleby(args, { env: { BARTLEBY_URL: server.url } })

  beforeAll(async () => {
    path = await mkdtemp(join(tmpdir(), 'bartleby-folder-'))
    for (const name of ['one', 'two', 'three']) await writeFile(join(path, name), `{"file":"${name}"}`)
    const handle = () => {
      if (isBroken) throw new TypeError('no such column: tax')
    }
    server = await serve(
      loadConfig({ env: { BARTLEBY_LOG_LEVEL: 'silent' }, flags: { port: 0, store: 'sqlite::memory:' } }),
      { sources: [folderSource({ path, handle })] },
    )
    await vi.waitFor(async () => expect((await get('/api/dlq?source=folders')).data.items).toHaveLength(3))
  })
  afterAll(async () => {
    await server?.stop()
    await rm(path, { recursive: true })
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
    isBroken = false
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
  })
})

it('a source with the name of another one is refused', async () => {
  const taken = { ...folderSource({ path: tmpdir(), handle: () => {} }), name: 'queues' }
  await expect(Office.open({ store: 'sqlite::memory:', sources: [taken] })).rejects.toThrow(
    "sources: 'queues' is the name of another source",
  )
})

it('a source that cannot stop keeps the store from nothing, and is forgotten with its office', async () => {
  const path = await mkdtemp(join(tmpdir(), 'bartleby-folder-'))
  const module = folderSource({ path, handle: () => {} })
  const open = async (parts: OfficeParts) => {
    const opened = await module.open(parts, undefined)
    const stop = async () => {
      await opened.stop?.()
      throw new Error('stuck')
    }
    return { ...opened, stop }
  }
  const office = await Office.open({ store: 'sqlite::memory:', sources: [{ ...module, open }] })
  expect(sourceNames()).toContain('folders')
  await expect(office.close()).rejects.toThrow('stuck')
  await expect(office.ping()).rejects.toThrow()
  expect(sourceNames()).not.toContain('folders')
  await rm(path, { recursive: true })
})
