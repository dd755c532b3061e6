/** An export to a disk that is full, against a server that answers as told. */
import { mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bartleby } from '../../../test/world/terminal-double.ts'

const LETTER = { engine: 'hmac', rowKey: 'a' }
const ANSWERS: Readonly<Record<string, object>> = {
  '/api/dlq/total': { total: 1, exact: true },
  '/api/dlq': { items: [LETTER], continuationToken: null },
  '/api/dlq/hmac/a': LETTER,
}

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-export-'))
  vi.stubGlobal('fetch', async (url: string) => ({
    status: 200,
    text: async () => JSON.stringify({ data: ANSWERS[new URL(url).pathname] }),
  }))
})

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
})

describe('an export', () => {
  it('says that the file cannot be written, instead of ending in the middle of it', async () => {
    const other = await open(join(folder, 'other'), 'w')
    await other.close()
    vi.spyOn(Object.getPrototypeOf(other), 'appendFile').mockRejectedValue(new Error('no space left'))
    expect(await bartleby(['letters', 'export', '--output', join(folder, 'letters.ndjson')])).toMatchObject({
      code: 1,
      err: 'bartleby: no space left',
    })
  })
})
