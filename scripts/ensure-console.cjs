/*
 * Runs before `npm start` and `npm test`, and as `npm run build:console`: builds the console with Vite when it was not built yet or
 * its sources have changed since, and does nothing (a few milliseconds) when it is current.
 * Plain CommonJS for Node 20, as the install step before it; Vite itself runs on the pinned Node.
 *
 *   node scripts/ensure-console.cjs [--optional] [--force]     --optional: a failure is told, and no failure
 *                                                              --force: builds also what is current
 */
'use strict'

const { spawnSync } = require('node:child_process')
const { createHash } = require('node:crypto')
const {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} = require('node:fs')
const { dirname, join, relative } = require('node:path')
const { promisify } = require('node:util')
const zlib = require('node:zlib')

const root = join(__dirname, '..')

/** What a build depends on, besides the versions in package-lock.json; tests lie beside their sources. */
const SOURCES = ['src', 'public', 'index.html', 'vite.config.ts', 'package.json']
const TESTS = /\.test\.tsx?$/
/** In the folder that was built: the digest of the sources that it was built from. */
const BUILT_FROM = '.sources'
/** No build takes this long. */
const LONG_AGO_MS = 3_600_000
/** Texts worth compressing; the page itself is not, because the server writes into it. */
const COMPRESSED = /\.(?:js|mjs|css|svg)$/

/** All files at or below a path. */
function filesAt(path) {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesAt(join(path, name)))
}

/** The digest of everything that a build of this folder depends on. */
function digestOf(folder, lockFile) {
  const digest = createHash('sha256')
  const sources = SOURCES.flatMap((name) => filesAt(join(folder, name))).filter((file) => !TESTS.test(file))
  for (const file of [...sources, lockFile]) {
    const content = readFileSync(file)
    digest.update(`${relative(folder, file).replaceAll('\\', '/')}\0${content.length}\0`).update(content)
  }
  return digest.digest('hex')
}

/** Why a build is needed, or undefined when none is. */
function reasonToBuild(folder, lockFile) {
  const dist = join(folder, 'dist')
  const isBuilt = existsSync(join(dist, 'index.html'))
  // A deployment may bring the build without the sources.
  if (isBuilt && !existsSync(join(folder, 'index.html'))) return undefined
  if (!isBuilt || !existsSync(join(dist, BUILT_FROM))) return 'it was not built yet'
  const builtFrom = readFileSync(join(dist, BUILT_FROM), 'utf8')
  return builtFrom === digestOf(folder, lockFile) ? undefined : 'its sources have changed'
}

/** Writes every text of a folder a second and a third time, compressed, for browsers to choose from. */
async function compress(folder) {
  const gzip = promisify(zlib.gzip)
  const brotli = promisify(zlib.brotliCompress)
  await Promise.all(
    filesAt(folder)
      .filter((file) => COMPRESSED.test(file))
      .map(async (file) => {
        const content = readFileSync(file)
        const params = { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: content.length }
        writeFileSync(`${file}.gz`, await gzip(content, { level: zlib.constants.Z_BEST_COMPRESSION }))
        writeFileSync(`${file}.br`, await brotli(content, { params }))
      }),
  )
}

/**
 * Builds a folder into its `dist`; gives what Vite said when it failed, undefined when it did not. It is built beside and put in place
 * when it is complete: a server that runs sees the old one or the new one, and of two builds at once one stays.
 */
async function build(folder, lockFile) {
  const builtFrom = digestOf(folder, lockFile)
  const fresh = join(folder, `.building-${process.pid}`)
  removeLeftovers(folder)
  try {
    const failed = runVite(folder, fresh)
    if (failed !== undefined) return failed
    await compress(fresh)
    writeFileSync(join(fresh, BUILT_FROM), builtFrom)
    putInPlace(fresh, join(folder, 'dist'))
    return undefined
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/**
 * The old one is moved aside as a whole: whoever looks meanwhile finds all files of a build, or for a moment none. Another build may
 * put its own there between the two steps; then that one gives way.
 */
function putInPlace(fresh, dist) {
  const old = `${fresh}-old`
  for (let tries = 1; ; tries++) {
    try {
      rmSync(old, { recursive: true, force: true })
      if (existsSync(dist)) renameSync(dist, old)
      renameSync(fresh, dist)
      break
    } catch (error) {
      if (tries === 5) throw error
    }
  }
  rmSync(old, { recursive: true, force: true })
}

/** Folders of builds that were killed long ago. */
function removeLeftovers(folder) {
  for (const name of readdirSync(folder).filter((each) => each.startsWith('.building-'))) {
    const left = join(folder, name)
    if (Date.now() - (statSync(left, { throwIfNoEntry: false })?.mtimeMs ?? 0) > LONG_AGO_MS)
      rmSync(left, { recursive: true, force: true })
  }
}

/** Gives what Vite said when it failed. */
function runVite(folder, outDir) {
  const pinned = join(root, 'node_modules/node/bin', process.platform === 'win32' ? 'node.exe' : 'node')
  const vite = join(dirname(require.resolve('vite/package.json', { paths: [folder] })), 'bin/vite.js')
  const args = [vite, 'build', '--outDir', outDir, '--emptyOutDir', '--logLevel', 'warn']
  const { status, error, stdout, stderr } = spawnSync(existsSync(pinned) ? pinned : process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, NODE_ENV: 'production' },
  })
  if (error) return `Vite could not be run: ${error.message}`
  return status === 0 ? undefined : `${stdout}${stderr}`.trim()
}

async function main() {
  const folder = join(root, 'console')
  const lockFile = join(root, 'package-lock.json')
  const isForced = process.argv.includes('--force')
  const reason = isForced ? 'as asked' : reasonToBuild(folder, lockFile)
  if (reason === undefined) return 0

  const startedAt = process.hrtime.bigint()
  console.log(`bartleby: building the console (${reason}); this takes some seconds, once`)
  const failed = await build(folder, lockFile).catch((error) => String(error?.message ?? error))
  if (failed !== undefined) {
    const isOptional = process.argv.includes('--optional')
    console.error(
      `${failed}\nbartleby: the console could not be built; the reason is in the lines above.` +
        (isOptional ? ' The server starts without it, or with the one built before.' : '') +
        '\n          `npm run build:console` repeats just this step.',
    )
    return isOptional ? 0 : 1
  }
  const seconds = Number((process.hrtime.bigint() - startedAt) / 1_000_000n) / 1000
  console.log(`bartleby: console built in ${seconds.toFixed(0)} s`)
  return 0
}

if (require.main === module) {
  main().then((code) => {
    process.exitCode = code
  })
}

module.exports = { build, reasonToBuild }
