/**
 * The package as users get it: packed, unpacked below the node_modules of another project, with nothing beside
 * it but the dependencies that it declares. Nothing is fetched.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../harness/limits.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const tools = join(root, 'node_modules/.bin')

let folder: string
let project: string
let installed: string

/** Runs a program with the tools of this repository; gives what it wrote, and fails when it fails. */
function run(cwd: string, program: string, ...args: string[]): string {
  const env = { ...process.env, PATH: `${tools}${delimiter}${process.env.PATH}` }
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    env,
    encoding: 'utf8',
    timeout: PATIENCE_MS,
  })
  expect({ status, output: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, output: '' })
  return stdout
}

/** Packs a copy, so that a test run leaves no build behind in the repository; gives the path of the archive. */
function pack(): string {
  const copy = join(folder, 'copy')
  for (const name of readdirSync(root)) {
    if (!['.git', '.cache', 'bench', 'data', 'dist', 'examples', 'node_modules'].includes(name)) {
      cpSync(join(root, name), join(copy, name), { recursive: true })
    }
  }
  link(join(root, 'node_modules'), join(copy, 'node_modules'))
  // Built by `npm test` already, and then there is nothing to do.
  run(copy, process.execPath, 'scripts/ensure-console.cjs')
  // `npm test` has checked the types already; leaving that out makes the build four times as fast.
  run(copy, 'npm', 'run', 'build', '--', '--noCheck')
  run(copy, 'npm', 'pack', '--ignore-scripts', '--offline', '--pack-destination', folder)
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz'))
  if (archive === undefined) throw new Error('npm pack left no archive')
  return join(folder, archive)
}

/** What `npm install` of the archive would make: the package, its dependencies beside it, its command. */
function install(archive: string): void {
  const modules = join(project, 'node_modules')
  mkdirSync(modules, { recursive: true })
  run(modules, 'tar', '-xzf', archive)
  renameSync(join(modules, 'package'), installed)
  // The types of Node are the project's own choice, as in any project in TypeScript.
  for (const name of [...Object.keys(manifest().dependencies), '@types/node']) {
    link(join(root, 'node_modules', name), join(modules, name))
  }
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
}

interface Manifest {
  readonly version: string
  readonly bin: { readonly bartleby: string }
  readonly dependencies: Readonly<Record<string, string>>
}

function manifest(): Manifest {
  // Our own package.json, which has all three.
  return JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Manifest
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path, 'junction')
}

/** The first example of the README that imports from a module. */
function readmeExample(module: string): string {
  const blocks = readFileSync(join(installed, 'README.md'), 'utf8').matchAll(/```ts\n(.*?)```/gs)
  for (const [, code = ''] of blocks) if (code.includes(`from '${module}'`)) return code
  throw new Error(`README.md has no example with '${module}'`)
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-package-'))
  project = join(folder, 'project')
  installed = join(project, 'node_modules/bartleby')
  install(pack())
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the package', () => {
  it('holds the build and what users read, but no sources, tests or tools', () => {
    expect(readdirSync(installed).toSorted()).toEqual(
      [
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'bin',
        'console',
        'dist',
        'docs',
        'package.json',
        'profiles',
      ].toSorted(),
    )
    expect(readdirSync(join(installed, 'console'))).toEqual(['dist'])
    const built = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' })
    expect(built.filter((name) => /\.test\.|-double\.|stub-/.test(name))).toEqual([])
  })

  it('spares its users a Node of its own', () => {
    expect(Object.keys(manifest().dependencies)).not.toContain('node')
  })

  it('runs the library example of the README', () => {
    writeFileSync(
      join(project, 'example.js'),
      `${readmeExample('bartleby')}
      const again = await Office.open({ store: 'sqlite:./data/app.db' })
      console.log((await again.queues.stats('orders')).partitions.map(({ total }) => total).join())
      await again.close()`,
    )
    expect(run(project, process.execPath, 'example.js').trim()).toBe('0')
  })

  it('gives the client', () => {
    const code = `import { QueueClient } from 'bartleby/client'; console.log(typeof new QueueClient({ url: 'http://x' }).consume)`
    expect(run(project, process.execPath, '--input-type=module', '--eval', code).trim()).toBe('function')
  })

  it('has types for the examples of the README, checked with the declarations themselves', () => {
    // If something had no types, it would pass for a number as well, and the directive would be one too many.
    const notNumber = (name: string) => `// @ts-expect-error\nexport const wrong: number = ${name}`
    const library = `${readmeExample('bartleby')}${notNumber('batch.items')}`
    const client = `${readmeExample('bartleby/client')}${notNumber('consumer')}`
    writeFileSync(join(project, 'library.ts'), library)
    writeFileSync(join(project, 'client.ts'), `declare function ship(payload: unknown): void\n${client}`)
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024']
    run(project, 'tsc', ...options, '--types', 'node', 'library.ts', 'client.ts')
  })

  it('brings the console, which its server serves', async () => {
    const command = join(installed, manifest().bin.bartleby)
    const server = spawn(process.execPath, [command, 'serve', '--port', '0', '--store', 'sqlite::memory:'])
    try {
      const [line] = await once(server.stdout, 'data')
      const url = /listening on (\S+)/.exec(String(line))?.[1]
      const page = await (await fetch(`${url}/letters`, { headers: { accept: 'text/html' } })).text()
      const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1]
      expect((await fetch(`${url}${script}`)).headers.get('content-type')).toContain('javascript')
    } finally {
      server.kill()
      await once(server, 'exit')
    }
  })

  it('brings the command, which tells its version and its use', () => {
    const { bin, version } = manifest()
    const command = join(installed, bin.bartleby)
    expect(run(project, process.execPath, command, '--help')).toContain('Usage: bartleby')
    expect(run(project, process.execPath, command, '--version').trim()).toBe(version)
  })
})
