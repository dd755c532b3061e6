/** `bartleby serve --demo` as a process: what it prints, what it leaves behind, how it ends. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { bartleby } from '../../test/world/terminal-double.ts'

const bin = fileURLToPath(new URL('../../bin/bartleby.js', import.meta.url))

// Starting a process takes seconds on a busy machine.
it('says what to try first, leaves nothing behind, and ends with 0 on SIGTERM', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bartleby-demo-'))
  const env = { PATH: process.env.PATH }
  const child = spawn(process.execPath, [bin, 'serve', '--demo', '--port', '0'], { cwd: folder, env })
  try {
    let out = ''
    let err = ''
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk
    })
    const closed = once(child, 'close')
    for await (const chunk of child.stdout) {
      out += chunk
      if (out.includes('Signatures')) child.kill('SIGTERM')
    }
    expect(await closed).toEqual([0, null])
    expect(out).toMatch(/^bartleby listening on http:\/\/127\.0\.0\.1:\d+\ndemo: .*invented.*\n$/)
    expect(err).toBe('')
    expect(readdirSync(folder)).toEqual([])
  } finally {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})

it('is explained by the help of serve', async () => {
  const { out } = await bartleby(['serve', '--help'])
  expect(out).toContain('--demo')
  expect(out).toContain('$ bartleby serve --demo')
})
