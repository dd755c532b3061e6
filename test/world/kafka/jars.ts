/**
 * The jars of the test broker: copied once by Maven into a folder that is no part of the repository, and found there by later runs.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

const POM = fileURLToPath(new URL('pom.xml', import.meta.url))
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/bartleby-kafka/', import.meta.url))
const OLDEST_JAVA = 17

/** The class path of the broker. Throws with one sentence when there can be none here. */
export async function brokerClassPath(): Promise<string> {
  await checkJava()
  const folder = await cachedFolder('jars')
  if (!(await exists(folder))) await copyJars(folder)
  return join(folder, '*')
}

/** Where something of this version of Kafka is kept between runs. */
export async function cachedFolder(what: 'jars' | 'formatted'): Promise<string> {
  const version = /<kafka\.version>(.+)<\/kafka\.version>/.exec(await readFile(POM, 'utf8'))?.[1]
  if (version === undefined) throw new Error('test/world/kafka/pom.xml names no version of Kafka')
  return join(CACHE, `${version}-${what}`)
}

async function checkJava(): Promise<void> {
  // It prints its version on standard error.
  const { stderr } = await run('java', ['-version']).catch(() => {
    throw new Error(
      `there is no Java here; Java ${OLDEST_JAVA} or later runs the Kafka broker of these tests`,
    )
  })
  const major = Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0)
  if (major < OLDEST_JAVA) throw new Error(`Java ${major} is too old for the Kafka broker of these tests`)
}

/** Copied beside and renamed: a folder that is there is whole, whoever else is copying. */
async function copyJars(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const unfinished = await mkdtemp(join(CACHE, 'unfinished-'))
  try {
    const flags = ['-q', '-B', '-f', POM, 'dependency:copy-dependencies', '-DincludeScope=runtime']
    await run('mvn', [...flags, `-DoutputDirectory=${unfinished}`], { timeout: 300_000 }).catch((error) => {
      const said = String(error?.stdout || error?.message).split('\n', 1)[0]
      throw new Error(`Maven could not get the jars of the Kafka broker of these tests: ${said}`)
    })
    await rename(unfinished, folder).catch(async (error) => {
      if (!(await exists(folder))) throw error
    })
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

/** Whether something lies there. */
export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
