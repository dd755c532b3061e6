/** What the plans of Azure on SQLite must be like. None of them sorts, or reads something from end to end. */

/** The index that a statement must find its rows by, where it does not name it. The `autoindex` are those of primary keys. */
export const AZURE_INDEXES: Readonly<Record<string, readonly string[]>> = {
  sqlite_autoindex_azure_entities_1: [
    'azure.forgetEntities',
    'azure.moveEntity',
    'azure.openEntities',
    'azure.readEntities',
    'azure.writeStamp',
    'azure.writeState',
  ],
  azure_entity_of_letter: ['azure.putWrites', 'azure.readCurrent', 'azure.rest', 'azure.supersede'],
  azure_sent: ['azure.readSent'],
  azure_held: ['azure.readHeld'],
  azure_uncertain: ['azure.standing'],
  sqlite_autoindex_azure_writes_1: [
    'azure.dropWrite',
    'azure.openEntities',
    'azure.postponeWrite',
    'azure.writesOf',
  ],
  azure_writes_due: ['azure.dueWrites'],
  azure_writes_oldest: ['azure.standing'],
  azure_writes_of_letter: ['azure.dropWrites'],
  sqlite_autoindex_azure_marks_1: ['azure.readMark'],
}
