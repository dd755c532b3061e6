/** The examples of the README are run as they stand there. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startServer } from '../test/world/server.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The first code block under a heading. */
function exampleUnder(heading: string): string {
  const section = readme.split(`\n## ${heading}\n`)[1] ?? ''
  const code = /```\w+\n(.*?)```/s.exec(section)?.[1]
  if (code === undefined) throw new Error(`README.md has no example under '${heading}'`)
  return code
}

let folder: string

beforeEach(() => {
  // Inside the repository, so that `import … from 'bartleby'` means this package; the condition means its sources.
  mkdirSync(join(root, '.cache'), { recursive: true })
  folder = mkdtempSync(join(root, '.cache/readme-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('the README', () => {
  it('has a library example that runs and leaves the queue empty', () => {
    const check = `
      import { Office as Again } from 'bartleby'
      const again = await Again.open({ store: 'sqlite:./data/app.db' })
      console.log(JSON.stringify((await again.queues.stats('orders')).partitions.map(({ total }) => total)))
      await again.close()`
    writeFileSync(join(folder, 'example.ts'), exampleUnder('As a library') + check)
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--conditions=bartleby-source', 'example.ts'],
      {
        cwd: folder,
        encoding: 'utf8',
      },
    )
    expect(stderr).toBe('')
    expect({ status, stdout: stdout.trim().split('\n').at(-1) }).toEqual({ status: 0, stdout: '[0]' })
  })

  it('has an HTTP example whose calls all succeed', async () => {
    const calls = [...exampleUnder('Over HTTP').matchAll(/^curl --json '(.*)' \$at\/(\S+)$/gm)]
    const server = await startServer({ store: 'sqlite::memory:' })
    try {
      let id = ''
      for (const [, body = '', path] of calls) {
        const reply = await fetch(`${server.url}/v1/${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', accept: 'application/json' },
          body: body.replace('<id of the item>', id),
        })
        // What the calls answer; a lease has items.
        const answer = (await reply.json()) as { items?: { id: string }[] }
        expect({ path, status: reply.status, answer }).toMatchObject({ status: 200 })
        id = answer.items?.[0]?.id ?? id
      }
    } finally {
      await server.stop()
    }
    expect(calls.length).toBe(4)
  })
})
