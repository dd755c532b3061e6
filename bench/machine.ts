/** What the numbers were taken on. */
import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'

/** Facts as label and text, in the order they are printed. */
export function machineFacts(folder: string): [string, string][] {
  const processors = cpus()
  return [
    ['CPU', `${processors[0]?.model.trim() ?? 'unknown'}, ${processors.length} cores`],
    ['memory', `${(totalmem() / 2 ** 30).toFixed(1)} GiB`],
    ['system', `${type()} ${release()}`],
    ['fdatasync of 8 KiB', `${fdatasyncMs(folder).toFixed(2)} ms (median of 200)`],
    ['Node', process.version],
    ['commit', commit()],
  ]
}

/** The price of durability on this disk: every commit pays it once. */
function fdatasyncMs(folder: string): number {
  const file = openSync(join(folder, 'fdatasync'), 'w')
  const page = Buffer.alloc(8192, 1)
  const tookMs = Array.from({ length: 200 }, () => {
    writeSync(file, page)
    const startMs = performance.now()
    fdatasyncSync(file)
    return performance.now() - startMs
  })
  closeSync(file)
  return tookMs.sort((a, b) => a - b)[100] ?? Number.NaN
}

function commit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  try {
    const changed = git('status', '--porcelain').trim() === '' ? '' : ', with uncommitted changes'
    return git('rev-parse', '--short', 'HEAD').trim() + changed
  } catch {
    return 'none'
  }
}
