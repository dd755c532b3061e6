/** Fills an empty store with letters, by the million: straight into the tables, as many years of work would have left them. */
import { Office } from '../../src/index.ts'
import { type Loader, openLoader } from './loader.ts'
import { deadQueue, type Mix, usualMix } from './shape.ts'
import { createKinds, insertHistory, insertLetters, insertTexts, insertTotals, words } from './sql.ts'

const chunk = 250_000

/** Loads `count` letters, the newest of them from `nowUs`. */
export async function loadLetters(
  store: string,
  count: number,
  nowUs: bigint,
  mix: Mix = usualMix,
): Promise<void> {
  await createQueues(store, mix)
  const loader = await openLoader(store)
  try {
    await registerKinds(loader, nowUs, mix)
    const putIndexesBack = await loader.dropIndexes(['letters', 'history', 'letter_texts'])
    for (let first = 1; first <= count; first += chunk) {
      const range = { first, last: Math.min(first + chunk - 1, count), count, nowUs, mix }
      await loader.run('BEGIN')
      await loader.run(insertLetters(loader.dialect, range))
      for (const statement of insertHistory(loader.dialect, range)) await loader.run(statement)
      await loader.run(insertTexts(loader.dialect, range.first, range.last))
      await loader.run('COMMIT')
      if (count > chunk)
        console.error(`  loaded ${range.last.toLocaleString('en')} of ${count.toLocaleString('en')}`)
    }
    await putIndexesBack()
    for (const statement of insertTotals(loader.dialect)) await loader.run(statement)
    await moveNumbersOn(loader, count)
    await loader.calm()
  } finally {
    await loader.close()
  }
}

/** The queues that letters of plain queues came from, and their dead queue. */
async function createQueues(store: string, { kinds }: Mix): Promise<void> {
  const office = await Office.open({ store })
  try {
    const settings = { leaseTimeout: '5m', expireTimeout: '24h', requestedPartitions: 1 }
    await office.queues.create({ ...settings, queueName: deadQueue })
    const places = kinds.flatMap(({ place }) => (place.source === 'queues' ? [place.queue] : []))
    for (const queueName of new Set(places)) await office.queues.create({ ...settings, queueName, deadQueue })
  } finally {
    await office.close()
  }
}

/** Signatures, drawers and series, and the table of kinds that has their numbers. */
async function registerKinds(loader: Loader, nowUs: bigint, { kinds }: Mix): Promise<void> {
  const { schema } = words[loader.dialect]
  const id = async (text: string, ...values: readonly (string | number)[]): Promise<number> => {
    const [row] = await loader.rows(`${text} RETURNING id`, ...values)
    return Number(row?.id)
  }
  const numbers = new Map<string, number>()
  const once = async (key: string, make: () => Promise<number>): Promise<number> => {
    const number = numbers.get(key) ?? (await make())
    numbers.set(key, number)
    return number
  }
  const [position] = await loader.rows(
    `SELECT part FROM ${schema}partitions JOIN ${schema}queues ON queues.id = partitions.queue_id WHERE name = $1`,
    deadQueue,
  )
  await loader.run(createKinds)
  for (const [number, { place, signature, errorClass, before, after }] of kinds.entries()) {
    const { source, engine, queue } = place
    const group = await once(signature.fingerprint, () =>
      id(
        `INSERT INTO ${schema}signatures (fingerprint, error_class, title, first_seen_at) VALUES ($1, $2, $3, $4)`,
        signature.fingerprint,
        signature.errorClass,
        signature.title,
        Number(nowUs),
      ),
    )
    const filed = await once(`place ${source} ${engine} ${queue}`, () =>
      id(`INSERT INTO ${schema}places (source, engine, queue) VALUES ($1, $2, $3)`, source, engine, queue),
    )
    const drawer = await id(
      `INSERT INTO ${schema}drawers (source, engine, queue, signature, place) VALUES ($1, $2, $3, $4, $5)`,
      source,
      engine,
      queue,
      group,
      filed,
    )
    const series = (operation: string) =>
      once(`${engine} ${operation}`, () =>
        id(
          `INSERT INTO ${schema}history_series (engine, operation, status) VALUES ($1, $2, 0)
           ON CONFLICT (engine, operation, status) DO UPDATE SET engine = excluded.engine`,
          engine,
          operation,
        ),
      )
    const lone = source === 'queues'
    await loader.run(
      'INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)',
      number,
      drawer,
      engine,
      lone ? deadQueue : null,
      lone ? Number(position?.part) : null,
      lone ? 1 : 0,
      errorClass,
      before,
      after,
      await series('capture'),
      await series('discard'),
      await series('expire'),
    )
  }
}

/** The office goes on numbering behind what was loaded. */
async function moveNumbersOn(loader: Loader, count: number): Promise<void> {
  if (loader.dialect === 'postgres') {
    await loader.rows(`SELECT setval('bartleby.letter_ids', $1), setval('bartleby.serials', $1)`, count)
  } else {
    await loader.run(`UPDATE serials SET last = max(last, $1) WHERE name IN ('letters', 'items')`, count)
  }
}
