/** A source that is given to one office, beside those of the list. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sourceNames } from '../../src/letters/kinds.ts'
import { Office } from '../../src/office.ts'
import type { OfficeParts } from '../../src/sources/source-module.ts'
import { folderSource } from './folders.ts'

it('a source with the name of another one is refused', async () => {
  const taken = { ...folderSource(() => {}), name: 'queues' }
  await expect(Office.open({ store: 'sqlite::memory:', sources: [taken] })).rejects.toThrow(
    "sources: 'queues' is the name of another source",
  )
})

it('a source that cannot stop keeps the store from nothing, and is forgotten with its office', async () => {
  const path = await mkdtemp(join(tmpdir(), 'bartleby-folder-'))
  const module = folderSource(() => {})
  const open = async (parts: OfficeParts) => {
    const opened = await module.open(parts, { path, everySeconds: 1 })
    const { folder } = opened.face
    const stuck = {
      name: 'stuck',
      stop: async () => {
        await folder.stop()
        throw new Error('stuck')
      },
    }
    return { ...opened, services: [stuck] }
  }
  const office = await Office.open({ store: 'sqlite::memory:', sources: [{ ...module, open }] })
  expect(sourceNames()).toContain('folders')
  await expect(office.close()).rejects.toThrow('stuck')
  await expect(office.ping()).rejects.toThrow()
  expect(sourceNames()).not.toContain('folders')
  await rm(path, { recursive: true })
})

it('an office that cannot be opened says why, also when what had begun cannot be stopped', async () => {
  const open = ({ queues }: OfficeParts) => ({
    letters: queues.letterSource('stuck'),
    services: [
      {
        name: 'stuck',
        start: () => Promise.reject(new Error('cannot start')),
        stop: () => Promise.reject(new Error('cannot stop')),
      },
    ],
    face: {},
  })
  const stuck = { name: 'stuck', title: 'Stuck', kind: {}, open }
  await expect(Office.open({ store: 'sqlite::memory:', sources: [stuck] })).rejects.toThrow('cannot start')
  expect(sourceNames()).not.toContain('stuck')
})
