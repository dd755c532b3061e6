/**
 * The queue messages as the contract states them (section 4), built here and not taken from the product, so
 * that a wrong field number in the product cannot hide behind the same mistake in the tests.
 */
import { create, createFileRegistry, type DescMessage } from '@bufbuild/protobuf'
import {
  FileDescriptorProtoSchema,
  file_google_protobuf_timestamp,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt'

/** `json name: [number, type, protobuf name when it differs]`; a type in brackets is repeated. */
type Fields = Record<string, [number: number, type: string, protobufName?: string]>

const queueNameOnly: Fields = { queue_name: [1, 'string', 'queueName'] }

/** The fields of every message, by its name. */
export const FIELDS: Record<string, Fields> = {
  Reply: {
    code: [1, 'int32'],
    code_text: [2, 'string', 'codeText'],
    message: [3, 'string'],
    details: [4, 'map'],
  },
  QueueProduceRequest: {
    queue_name: [1, 'string', 'queueName'],
    request_timeout: [2, 'string', 'requestTimeout'],
    items: [3, '[QueueProduceItem]'],
  },
  QueueProduceItem: {
    encoding: [1, 'string'],
    kind: [2, 'string'],
    reference: [3, 'string'],
    enqueue_at: [4, 'TS', 'enqueueAt'],
    bytes: [5, 'bytes'],
    utf8: [6, 'string'],
  },
  QueueLeaseRequest: {
    queue_name: [1, 'string', 'queueName'],
    batch_size: [2, 'int32', 'batchSize'],
    client_id: [3, 'string', 'clientId'],
    request_timeout: [4, 'string', 'requestTimeout'],
  },
  QueueLeaseResponse: {
    queue_name: [1, 'string', 'queueName'],
    partition: [2, 'int32'],
    items: [3, '[QueueLeaseItem]'],
  },
  QueueLeaseItem: {
    encoding: [1, 'string'],
    kind: [2, 'string'],
    reference: [3, 'string'],
    id: [4, 'string'],
    attempts: [5, 'int32'],
    lease_deadline: [6, 'TS', 'leaseDeadline'],
    bytes: [7, 'bytes'],
  },
  QueueCompleteRequest: {
    queue_name: [1, 'string', 'queueName'],
    partition: [2, 'int32'],
    request_timeout: [3, 'string', 'requestTimeout'],
    ids: [4, '[string]'],
  },
  QueueRetryRequest: {
    queue_name: [1, 'string', 'queueName'],
    partition: [2, 'int32'],
    items: [3, '[QueueRetryItem]'],
  },
  QueueRetryItem: { id: [1, 'string'], retry_at: [2, 'TS', 'retryAt'], dead: [3, 'bool'] },
  QueueClearRequest: {
    queue_name: [1, 'string', 'queueName'],
    scheduled: [3, 'bool'],
    queue: [4, 'bool'],
    destructive: [5, 'bool'],
  },
  QueueReloadRequest: queueNameOnly,
  QueueStatsRequest: queueNameOnly,
  QueuesInfoRequest: queueNameOnly,
  QueueStatsResponse: {
    queue_name: [1, 'string', 'queueName'],
    logicalQueues: [2, '[QueueLogicalStats]'],
  },
  QueueLogicalStats: {
    produce_waiting: [6, 'int32', 'produceWaiting'],
    lease_waiting: [7, 'int32', 'leaseWaiting'],
    complete_waiting: [8, 'int32', 'completeWaiting'],
    in_flight: [10, 'int32', 'inFlight'],
    partitions: [11, '[QueuePartitionStats]'],
  },
  QueuePartitionStats: {
    partition: [1, 'int32'],
    total: [2, 'int32'],
    total_leased: [3, 'int32', 'totalLeased'],
    failures: [4, 'int32'],
    average_age: [5, 'string', 'averageAge'],
    average_leased_age: [6, 'string', 'averageLeasedAge'],
    scheduled: [7, 'int32'],
  },
  QueueInfo: {
    queue_name: [1, 'string', 'queueName'],
    created_at: [2, 'TS', 'createdAt'],
    updated_at: [3, 'TS', 'updatedAt'],
    dead_queue: [4, 'string', 'deadQueue'],
    reference: [5, 'string'],
    lease_timeout: [6, 'string', 'leaseTimeout'],
    expire_timeout: [7, 'string', 'expireTimeout'],
    max_attempts: [8, 'int32', 'maxAttempts'],
    requested_partitions: [9, 'int32', 'requestedPartitions'],
    partitions: [10, '[PartitionInfo]'],
    namespace: [11, 'string'],
  },
  PartitionInfo: { partition: [1, 'int32'] },
  QueuesListRequest: { pivot: [2, 'string'], limit: [3, 'int32'], namespace: [4, 'string'] },
  QueuesListResponse: { items: [1, '[QueueInfo]'] },
  QueuesDeleteRequest: { queue_name: [1, 'string', 'queueName'], force: [2, 'bool'] },
  StorageItemsListRequest: {
    queue_name: [1, 'string', 'queueName'],
    partition: [2, 'int32'],
    pivot: [3, 'string'],
    limit: [4, 'int32'],
  },
  StorageItemsListResponse: { items: [1, '[StorageItem]'] },
  StorageItemsImportRequest: {
    queue_name: [1, 'string', 'queueName'],
    partition: [2, 'int32'],
    items: [3, '[StorageItem]'],
  },
  StorageItemsImportResponse: { items: [2, '[StorageItem]'] },
  StorageItemsDeleteRequest: {
    queue_name: [1, 'string', 'queueName'],
    partition: [2, 'int32'],
    ids: [3, '[string]'],
  },
  StorageItem: {
    id: [1, 'string'],
    source_id: [2, 'string'],
    is_leased: [3, 'bool', 'isLeased'],
    lease_deadline: [4, 'TS', 'leaseDeadline'],
    expire_deadline: [5, 'TS', 'expireDeadline'],
    dead_deadline: [6, 'TS', 'deadDeadline'],
    created_at: [7, 'TS', 'createdAt'],
    updated_at: [8, 'TS', 'updatedAt'],
    enqueue_at: [9, 'TS', 'enqueueAt'],
    attempts: [10, 'int32'],
    max_attempts: [11, 'int32', 'maxAttempts'],
    reference: [12, 'string'],
    encoding: [13, 'string'],
    kind: [14, 'string'],
    payload: [15, 'bytes'],
  },
}

/** Request and 200 reply of every path (section 3.1). */
export const CALLS = {
  '/v1/queue.produce': ['QueueProduceRequest', 'Reply'],
  '/v1/queue.lease': ['QueueLeaseRequest', 'QueueLeaseResponse'],
  '/v1/queue.complete': ['QueueCompleteRequest', 'Reply'],
  '/v1/queue.retry': ['QueueRetryRequest', 'Reply'],
  '/v1/queue.stats': ['QueueStatsRequest', 'QueueStatsResponse'],
  '/v1/queue.clear': ['QueueClearRequest', 'Reply'],
  '/v1/queue.reload': ['QueueReloadRequest', 'Reply'],
  '/v1/queues.create': ['QueueInfo', 'Reply'],
  '/v1/queues.update': ['QueueInfo', 'Reply'],
  '/v1/queues.delete': ['QueuesDeleteRequest', 'Reply'],
  '/v1/queues.list': ['QueuesListRequest', 'QueuesListResponse'],
  '/v1/queues.info': ['QueuesInfoRequest', 'QueueInfo'],
  '/v1/storage/items.list': ['StorageItemsListRequest', 'StorageItemsListResponse'],
  '/v1/storage/scheduled.list': ['StorageItemsListRequest', 'StorageItemsListResponse'],
  '/v1/storage/items.import': ['StorageItemsImportRequest', 'StorageItemsImportResponse'],
  '/v1/storage/items.delete': ['StorageItemsDeleteRequest', 'Reply'],
} as const

export type Path = keyof typeof CALLS

const SCALARS: Record<string, Type> = {
  string: Type.STRING,
  bytes: Type.BYTES,
  bool: Type.BOOL,
  int32: Type.INT32,
}

const detailsEntry = {
  name: 'DetailsEntry',
  options: { mapEntry: true },
  field: ['key', 'value'].map((name, index) => ({
    name,
    number: index + 1,
    label: Label.OPTIONAL,
    type: Type.STRING,
    jsonName: name,
  })),
}

function fieldOf(jsonName: string, [number, type, protobufName]: Fields[string]) {
  const repeated = type.startsWith('[') || type === 'map'
  const element = type.replace(/[[\]]/g, '')
  const scalar = SCALARS[element]
  const messageName =
    element === 'TS'
      ? '.google.protobuf.Timestamp'
      : element === 'map'
        ? '.Reply.DetailsEntry'
        : `.${element}`
  return {
    name: protobufName ?? jsonName,
    jsonName,
    number,
    label: repeated ? Label.REPEATED : Label.OPTIONAL,
    ...(scalar === undefined ? { type: Type.MESSAGE, typeName: messageName } : { type: scalar }),
  }
}

const file = create(FileDescriptorProtoSchema, {
  name: 'contract.proto',
  syntax: 'proto3',
  dependency: ['google/protobuf/timestamp.proto'],
  messageType: Object.entries(FIELDS).map(([name, fields]) => ({
    name,
    field: Object.entries(fields).map(([jsonName, field]) => fieldOf(jsonName, field)),
    nestedType: name === 'Reply' ? [detailsEntry] : [],
  })),
})

const registry = createFileRegistry(file, (name) =>
  name === 'google/protobuf/timestamp.proto' ? file_google_protobuf_timestamp : undefined,
)

/** The descriptor of one message of the contract. */
export function message(name: string): DescMessage {
  const found = registry.getMessage(name)
  if (found === undefined) throw new Error(`the contract has no message '${name}'`)
  return found
}
