import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

// Plain CommonJS without types: it must run on a Node that knows no TypeScript.
const { build, reasonToBuild } = createRequire(import.meta.url)('./ensure-console.cjs') as {
  build: (folder: string, lockFile: string) => Promise<string | undefined>
  reasonToBuild: (folder: string, lockFile: string) => string | undefined
}

const root = fileURLToPath(new URL('..', import.meta.url))

let place: string
let folder: string
let lockFile: string

const write = (path: string, text: string) => writeFileSync(join(folder, path), text)
const read = (path: string) => readFileSync(join(folder, path))

beforeAll(() => {
  // Inside the repository, so that Vite is found.
  mkdirSync(join(root, '.cache'), { recursive: true })
  place = mkdtempSync(join(root, '.cache/console-'))
  folder = join(place, 'console')
  lockFile = join(place, 'package-lock.json')
  mkdirSync(join(folder, 'src'), { recursive: true })
  writeFileSync(lockFile, '{}')
  write('package.json', '{ "type": "module" }')
  write(
    'index.html',
    '<!doctype html><meta name="style-nonce" content="__NONCE__" /><script type="module" src="/src/main.js"></script>',
  )
  write('src/main.js', `import './look.css'\ndocument.title = 'a console'`)
  write('src/look.css', 'body { color: teal }')
})

afterAll(() => rmSync(place, { recursive: true, force: true }))

// Each step finds what the one before has left: building takes longer than all else.
describe('the build step of the console', () => {
  it('builds what was not built yet, with compressed files beside the texts', async () => {
    expect(reasonToBuild(folder, lockFile)).toBe('it was not built yet')
    expect(await build(folder, lockFile)).toBeUndefined()
    expect(read('dist/index.html').toString()).toContain('__NONCE__')
    const assets = readdirSync(join(folder, 'dist/assets'))
    for (const kind of ['js', 'css']) {
      const name = assets.find((each) => each.endsWith(`.${kind}`))
      const built = read(`dist/assets/${name}`)
      expect(gunzipSync(read(`dist/assets/${name}.gz`))).toEqual(built)
      expect(brotliDecompressSync(read(`dist/assets/${name}.br`))).toEqual(built)
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('.building'))).toEqual([])
  })

  it('puts a new build in the place of the old one as a whole, and clears away what killed builds left', async () => {
    write('dist/of-the-old-one', '')
    mkdirSync(join(folder, '.building-1'))
    utimesSync(join(folder, '.building-1'), 0, 0)
    mkdirSync(join(folder, '.building-2'))
    expect(await build(folder, lockFile)).toBeUndefined()
    expect(existsSync(join(folder, 'dist/of-the-old-one'))).toBe(false)
    // The younger one may be under way.
    expect(readdirSync(folder).filter((name) => name.startsWith('.building'))).toEqual(['.building-2'])
    rmSync(join(folder, '.building-2'), { recursive: true })
  })

  it('does nothing when that is current', () => {
    expect(reasonToBuild(folder, lockFile)).toBeUndefined()
  })

  it.each([
    ['a source', () => join(folder, 'src/look.css')],
    ['the page', () => join(folder, 'index.html')],
    ['a version of a package', () => lockFile],
  ])('builds again when %s has changed', (_, file) => {
    const before = readFileSync(file())
    writeFileSync(file(), `${before} `)
    expect(reasonToBuild(folder, lockFile)).toBe('its sources have changed')
    writeFileSync(file(), before)
    expect(reasonToBuild(folder, lockFile)).toBeUndefined()
  })

  it('builds again when a source was added, but not for a test', () => {
    write('src/more.test.ts', '')
    expect(reasonToBuild(folder, lockFile)).toBeUndefined()
    write('src/more.ts', '')
    expect(reasonToBuild(folder, lockFile)).toBe('its sources have changed')
    rmSync(join(folder, 'src/more.ts'))
  })

  it('keeps what was built before when it fails, and says why', async () => {
    write('src/main.js', `import './nowhere.js'`)
    expect(await build(folder, lockFile)).toContain('nowhere.js')
    expect(existsSync(join(folder, 'dist/index.html'))).toBe(true)
    expect(reasonToBuild(folder, lockFile)).toBe('its sources have changed')
  })

  it('is content with a build that came without its sources', () => {
    rmSync(join(folder, 'index.html'))
    expect(reasonToBuild(folder, lockFile)).toBeUndefined()
  })
})
