/** A real Kafka broker of one node on the loopback interface, with its files in a temporary folder. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brokerClassPath, cachedFolder, exists } from './jars.ts'
import type { KeeperAnswer, KeeperCommand, KeeperOrder } from './keeper.ts'

const run = promisify(execFile)
const KEEPER = fileURLToPath(new URL('keeper.ts', import.meta.url))

// Starting takes half as long with the quick compiler alone, and nothing here runs long enough for the other to pay.
const JVM = ['-Xmx512m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-XX:-UsePerfData']
const LOGGING = [
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=error',
  '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
]

export interface BrokerOptions {
  /** Further lines of its configuration, or others than the usual ones. */
  readonly properties?: Readonly<Record<string, string>>
  /** Further arguments of the tool that formats its folder. */
  readonly format?: readonly string[]
  /** Given the port that clients of the plain listener reach, what they are told to connect to: a proxy's, for instance. */
  readonly advertise?: (port: number) => number | Promise<number>
}

export interface KafkaBroker {
  /** `host:port` of the listener without protection. */
  readonly bootstrap: string
  /** The folder of its logs: one folder per partition in it. */
  readonly logFolder: string
  /** Ends it at once; its files and its port stay. */
  kill(): Promise<void>
  /** Starts it again after `kill`. */
  start(): Promise<void>
  /** Stops its process, so that it answers nothing; connections stay open. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Ends it and removes its files. */
  dispose(): Promise<void>
}

/** Starts a broker that answers. Throws with one sentence when there can be none here. */
export async function startBroker({
  properties = {},
  format = [],
  advertise = (port) => port,
}: BrokerOptions = {}): Promise<KafkaBroker> {
  const classPath = await brokerClassPath()
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-kafka-'))
  try {
    const [port, controllerPort] = [await freePort(), await freePort()]
    const advertised = await advertise(port)
    const logFolder = join(folder, 'logs')
    const file = join(folder, 'server.properties')
    await writeFile(
      file,
      propertiesText({ ...usual(port, advertised, controllerPort, logFolder), ...properties }),
    )
    const java = [...JVM, ...LOGGING, '-cp', classPath]
    await formatFolder(java, file, logFolder, format)
    const kept = await keep({ args: [...java, 'kafka.Kafka', file], folder })
    return { bootstrap: `127.0.0.1:${advertised}`, logFolder, ...kept }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

/** A folder without anything special is formatted once and copied then: the tool takes as long as half a start. */
async function formatFolder(
  java: readonly string[],
  propertiesFile: string,
  logFolder: string,
  further: readonly string[],
): Promise<void> {
  const formatted = await cachedFolder('formatted')
  const isUsual = further.length === 0
  if (isUsual && (await exists(formatted))) return cp(formatted, logFolder, { recursive: true })
  const args = ['format', '-t', 'YmFydGxlYnktdGVzdHMtMQ', '-c', propertiesFile, ...further]
  await run('java', [...java, 'kafka.tools.StorageTool', ...args])
  if (!isUsual) return
  // Beside and renamed: a folder that is there is whole.
  const unfinished = `${formatted}-${process.pid}`
  await cp(logFolder, unfinished, { recursive: true })
  await rename(unfinished, formatted).catch(() => rm(unfinished, { recursive: true, force: true }))
}

const usual = (port: number, advertised: number, controllerPort: number, logFolder: string) => ({
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
  'controller.listener.names': 'CONTROLLER',
  'inter.broker.listener.name': 'PLAINTEXT',
  listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
  'advertised.listeners': `PLAINTEXT://127.0.0.1:${advertised}`,
  'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
  'log.dirs': logFolder,
  'num.network.threads': '2',
  'num.io.threads': '4',
  'num.partitions': '1',
  'offsets.topic.num.partitions': '1',
  'offsets.topic.replication.factor': '1',
  'transaction.state.log.num.partitions': '1',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '100',
  'auto.create.topics.enable': 'false',
  // One that was killed may not come back before its session has run out.
  'broker.session.timeout.ms': '1000',
  'broker.heartbeat.interval.ms': '300',
  'log.cleaner.dedupe.buffer.size': '2097152',
  'log.cleaner.backoff.ms': '500',
  // Deleted topics and records go at once.
  'file.delete.delay.ms': '100',
})

const propertiesText = (properties: Readonly<Record<string, string>>): string =>
  Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')

type Kept = Pick<KafkaBroker, 'kill' | 'start' | 'freeze' | 'thaw' | 'dispose'>

async function keep(order: KeeperOrder): Promise<Kept> {
  const keeper = spawn(process.execPath, [KEEPER, JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(keeper, 'exit')
  const answers = createInterface({ input: keeper.stdout })[Symbol.asyncIterator]()
  const tell = async (command: KeeperCommand): Promise<void> => {
    keeper.stdin.write(`${command}\n`)
    const { value } = await answers.next()
    const answer: KeeperAnswer = value === undefined ? { failed: 'its keeper ended' } : JSON.parse(value)
    if ('failed' in answer) throw new Error(answer.failed)
  }
  const dispose = async (): Promise<void> => {
    keeper.stdin.end()
    await ended
  }
  try {
    await tell('start')
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    start: () => tell('start'),
    kill: () => tell('kill'),
    freeze: () => tell('freeze'),
    thaw: () => tell('thaw'),
    dispose,
  }
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}
