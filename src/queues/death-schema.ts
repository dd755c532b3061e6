/** What queues say about the death of their items, and which queues are those of engines. */
import { inSqlite, type Migration } from '../db/migrations.ts'

const DEATHS = `
    -- What becomes of an item that dies while the queue has no dead queue: 'letter' or 'delete'. NULL: letter; the queue is
    -- older than the choice, and nobody was told yet.
    ALTER TABLE bartleby.queues ADD COLUMN on_death text;

    -- The engine whose letters the items become that die in a queue. A row outlives its queue.
    CREATE TABLE bartleby.engine_queues (
      queue text COLLATE "C" PRIMARY KEY,
      engine text COLLATE "C" NOT NULL
    );`

export const deathMigration: Migration = {
  number: 12,
  name: 'deaths of queues',
  postgres: DEATHS,
  sqlite: inSqlite(DEATHS),
}
