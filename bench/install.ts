/** Installs the peers when they are missing or of other versions than `bench/package.json` names. */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const folder = import.meta.dirname

/** The peers' versions as installed. */
export async function installPeers(): Promise<Record<string, string>> {
  const { dependencies }: { dependencies: Record<string, string> } = await packageJson(folder)
  const names = Object.keys(dependencies)
  if (!(await isCurrent(dependencies))) {
    console.error(`installing ${names.join(', ')} …`)
    // No lockfile: BullMQ's optional packages for other platforms leave holes in it, and npm ci refuses those.
    await npm(['install', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'])
  }
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await installedVersion(name)])),
  )
}

async function isCurrent(dependencies: Record<string, string>): Promise<boolean> {
  const versions = await Promise.all(Object.keys(dependencies).map(installedVersion))
  return Object.values(dependencies).every((wanted, at) => versions[at] === wanted)
}

async function installedVersion(name: string): Promise<string> {
  try {
    return (await packageJson(join(folder, 'node_modules', name))).version
  } catch {
    return ''
  }
}

async function packageJson(at: string) {
  return JSON.parse(await readFile(join(at, 'package.json'), 'utf8'))
}

async function npm(args: readonly string[]): Promise<void> {
  const child = spawn('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  })
  if (code !== 0) throw new Error(`npm ${args.join(' ')} ended with ${code}`)
}
