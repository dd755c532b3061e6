/** A server on a store and an account, for tests that kill it: `take` reads the tables, `send` sends a letter back. */
import { silentLog } from '../../src/core/log.ts'
import { SystemClock } from '../../src/core/system-clock.ts'
import { letterId } from '../../src/letters/letter.ts'
import { readLetterById } from '../../src/letters/lists/detail.ts'
import { newRegisters } from '../../src/letters/registers.ts'
import { azureTablesOf } from '../../src/outgoing/azure/keys.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import '../../src/sources/index.ts'
import { Azure } from '../../src/sources/azure/azure.ts'
import { openDatabase } from '../../src/store/open.ts'

const [mode = '', store = '', tables = '', letter = '0'] = process.argv.slice(2)
const settings = azureTablesOf(JSON.parse(tables))
if (settings === null) throw new Error('no account')
const db = openDatabase(store, { poolSize: 4 })
const clock = new SystemClock()
const parts = {
  db,
  clock,
  log: silentLog,
  registers: newRegisters(),
  engines: new EngineDirectory(),
  settings,
}
const azure = await Azure.open(parts)

const round = async () => {
  for (const rounds of azure.rounds) await rounds.now()
}
if (mode === 'take') {
  console.log('begins')
  await round()
  console.log('done')
} else {
  const found = await db.session('read', (session) => readLetterById(session, letterId(letter)))
  if (found === null) throw new Error(`there is no letter ${letter}`)
  await azure.send(found, null, { notes: null, actor: 'nell' })
  // The entity is written by a round.
  await round()
}
await azure.stop()
await db.close()
