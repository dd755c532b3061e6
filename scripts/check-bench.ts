/**
 * Type check of the benchmarks. Peers are installed only when they are measured: where they are not, what stands in the files that
 * import them cannot be judged.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const { dependencies } = JSON.parse(readFileSync(join(root, 'bench/package.json'), 'utf8'))
const missing = Object.keys(dependencies).filter(
  (peer) => !existsSync(join(root, 'bench/node_modules', peer)),
)

const importsMissing = (file: string): boolean => {
  const text = readFileSync(join(root, file), 'utf8')
  return missing.some((peer) => text.includes(`from '${peer}'`))
}

const { stdout, status, error } = spawnSync('tsc', ['-p', 'bench', '--pretty', 'false'], {
  cwd: root,
  encoding: 'utf8',
  shell: process.platform === 'win32',
})
if (error) throw error
const faults = stdout.split('\n').filter((line) => {
  const file = /^([^\s(]+)\(\d+,\d+\): error/.exec(line)?.[1]
  return file !== undefined && !importsMissing(file)
})
if (faults.length > 0 || (status !== 0 && !/: error/.test(stdout))) {
  console.error(faults.length > 0 ? faults.join('\n') : stdout)
  process.exit(1)
}
