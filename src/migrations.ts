/** Migrations of all modules. The newest number is the version of the program. */
import { historyMigration } from './history/schema.ts'
import { activityMigration, drawerMigration, placesMigration } from './letters/numbers/schema.ts'
import {
  deathIdMigration,
  endsMigration,
  keyMigration,
  letterMigration,
  lifeMigration,
  outcomesMigration,
} from './letters/schema.ts'
import { deadLetterMigration, deathMigration, queueMigration } from './queues/schema.ts'
import { redriveMembersMigration, redriveMigration, redriveRunsMigration } from './redrive/schema.ts'
import { SOURCES } from './sources/index.ts'
import type { Session } from './store/database.ts'
import { lockMigration } from './store/lock.ts'
import { type Migration, requireNewest } from './store/migrations.ts'
import { secretMigration } from './store/secrets.ts'
import { runMigration } from './work/schema.ts'

export const MIGRATIONS: readonly Migration[] = [
  lockMigration,
  queueMigration,
  letterMigration,
  historyMigration,
  deadLetterMigration,
  activityMigration,
  secretMigration,
  outcomesMigration,
  redriveMigration,
  deathMigration,
  lifeMigration,
  runMigration,
  redriveRunsMigration,
  deathIdMigration,
  endsMigration,
  keyMigration,
  placesMigration,
  redriveMembersMigration,
  drawerMigration,
  ...SOURCES.flatMap(({ migrations = [] }) => migrations),
]

/** Refuses stores of another version, which this program could not judge. */
export const requireThisVersion = (session: Session): Promise<void> => requireNewest(session, MIGRATIONS)
