import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

// Plain CommonJS without types: it must run on a Node that knows no TypeScript.
const { reasonToInstall } = createRequire(import.meta.url)('./ensure-installed.cjs') as {
  reasonToInstall: (folder: string, runtimeOnly: boolean, runningNode?: string) => string | undefined
}

let folder: string

const wanted = {
  '': { name: 'it' },
  'node_modules/node': { version: '26.0.0', dev: true },
  'node_modules/tool': { version: '2.0.0', dev: true },
  'node_modules/other-platform': { version: '1.0.0', optional: true },
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-install-'))
  writeLock('package-lock.json', wanted)
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function writeLock(path: string, packages: object): void {
  writeFileSync(join(folder, path), JSON.stringify({ packages }))
}

function installed(packages: object, withRuntime = true): void {
  mkdirSync(join(folder, 'node_modules/node/bin'), { recursive: true })
  writeLock('node_modules/.package-lock.json', packages)
  if (!withRuntime) return
  for (const name of ['node', 'node.exe']) writeFileSync(join(folder, 'node_modules/node/bin', name), '')
}

const { 'node_modules/other-platform': _, ...complete } = wanted

describe('the install step', () => {
  it('does nothing when all is in place, packages of other platforms aside', () => {
    installed(complete)
    expect(reasonToInstall(folder, false)).toBeUndefined()
  })

  it('knows the packages of this repository itself, which are links', () => {
    const workspace = {
      console: { version: '0.1.0', dependencies: { tool: '2.0.0' } },
      'node_modules/it-console': { resolved: 'console', link: true },
    }
    writeLock('package-lock.json', { ...wanted, ...workspace })
    installed({ ...complete, ...workspace })
    expect(reasonToInstall(folder, false)).toBeUndefined()
    installed(complete)
    expect(reasonToInstall(folder, true, '24.0.0')).toBe('console is missing')
  })

  it('installs on a fresh clone and after an install that was cut short', () => {
    expect(reasonToInstall(folder, false)).toBe('they are not there yet')
  })

  it('installs when a version differs from the lock file', () => {
    installed({ ...complete, 'node_modules/tool': { version: '1.9.0', dev: true } })
    expect(reasonToInstall(folder, false)).toBe('node_modules/tool is 1.9.0, not 2.0.0')
  })

  it('does without development packages where only the server is run', () => {
    const { 'node_modules/tool': __, ...runtime } = complete
    installed(runtime)
    expect(reasonToInstall(folder, false)).toBe('node_modules/tool is missing')
    expect(reasonToInstall(folder, true)).toBeUndefined()
  })

  it('installs when the runtime was not fetched', () => {
    installed(complete, false)
    expect(reasonToInstall(folder, true, '20.20.2')).toBe('the pinned Node was not fetched')
  })

  it('does without the pinned Node where only the server is run, on a Node that is recent enough', () => {
    const { 'node_modules/node': __, ...others } = complete
    installed(others, false)
    expect(reasonToInstall(folder, true, '24.0.0')).toBeUndefined()
    expect(reasonToInstall(folder, true, '20.20.2')).toBe('node_modules/node is missing')
    expect(reasonToInstall(folder, false, '24.0.0')).toBe('node_modules/node is missing')
  })
})
