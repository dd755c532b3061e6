/** The process of the other server. */
import { Office } from '../../src/index.ts'
import type { Errand } from './another-server.ts'
import { ACTOR } from './redriving.ts'

const office = await Office.open({ store: process.argv[2] ?? '' })
// The parent sends nothing else.
process.on('message', (errand) => void run(errand as Errand))
process.once('disconnect', () => void office.close().then(() => process.exit(0)))
process.send?.('ready')

async function run({ verb, id }: Errand): Promise<void> {
  await office.redrives[verb](id, ACTOR)
  process.send?.('done')
}
