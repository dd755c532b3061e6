/** Every statement of Azure on PostgreSQL with values that make a scan of the tables show, as load-azure.ts fills them. */
import { STATE } from '../../src/sources/azure/schema.ts'
import { type Argument, type Calls, list, NOW, range } from './explain.ts'
import { nameOf } from './load-azure.ts'

const some = range(300, 20)
const letters = list(some)
const entities = list(some.map((n) => nameOf('entity', n)))
const ENTITY = nameOf('entity', 300)
/** Beyond all that are there. */
const added: readonly Argument[] = [
  list(some.map((n) => nameOf('entity', 900_000_000 + n))),
  list(some.map((n) => 900_000_000 + n)),
  list(some.map(() => NOW)),
  list(some.map((n) => `engine-${n % 5}`)),
  list(some.map((n) => `queue-${n % 20}`)),
  list(some.map((n) => nameOf('correlation', n))),
  list(some.map((n) => `engine-${n % 5}`)),
  list(some.map((n) => `row-${n}`)),
  list(some.map((n) => `etag-${n}`)),
]

/** Calls and their values. */
export const AZURE_CALLS: Calls = {
  'azure.readEntities': [entities],
  'azure.readCurrent': [letters],
  'azure.readSent': [list(some.map((n) => nameOf('correlation', n)))],
  'azure.readHeld': [],
  'azure.insertEntities': added,
  'azure.supersede': [letters],
  'azure.writeState': [ENTITY, STATE.sent, 'claim', null, NOW],
  'azure.writeStamp': [ENTITY, 'etag', NOW],
  'azure.moveEntity': [ENTITY, 900_000_000],
  'azure.rest': [letters],
  'azure.putWrites': [letters, NOW],
  'azure.dueWrites': [NOW, 64],
  'azure.writesOf': [entities],
  'azure.dropWrite': [ENTITY, NOW + 300n],
  'azure.dropWrites': [letters],
  'azure.postponeWrite': [ENTITY, NOW + 300n, NOW + 60_000_000n, 'trouble'],
  'azure.standing': [],
  'azure.tables': [],
  'azure.readMark': [nameOf('table', 50)],
  'azure.writeMark': [nameOf('table', 50), NOW + 1n],
  'azure.openEntities': [entities],
  // Their letters are there, so they stay.
  'azure.forgetEntities': [entities],
}
