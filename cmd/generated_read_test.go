package cmd

import (
	"maps"

	"mqx/internal/render"
)

func init() { maps.Copy(schemas, readSchemas) }

// readSchemas are those of the reads of a live cluster.
var readSchemas = map[string][]render.Schema{
	"mqx admin topic get --show route":                             {topicRouteSchema},
	"mqx admin topic get --show allocation":                        {topicAllocationSchema},
	"mqx admin topic get --show lite":                              {topicLiteSchema, liteTopicSchema},
	"mqx admin group get --show lite":                              {groupLiteSchema},
	"mqx admin group status":                                       {groupHealthSchema},
	"mqx admin group status GROUP":                                 {groupStatusSchema},
	"mqx admin group status --show findings":                       {groupFindingSchema},
	"mqx admin group status --show subscriptions":                  {clientSubscriptionSchema},
	"mqx admin group status --show stack":                          {clientStackSchema},
	"mqx admin client ls":                                          {clientListSchema},
	"mqx admin client get, group status --show queues":             {clientQueueSchema},
	"mqx admin client get, group status --show topics":             {clientTopicSchema},
	"mqx admin client get, group status --show properties":         {clientPropertySchema},
	"mqx admin client get --show lite":                             {clientLiteSchema},
	"mqx admin producer ls":                                        {producerListSchema},
	"mqx admin broker ls, broker get, cluster get":                 {brokerListSchema},
	"mqx admin broker status":                                      {brokerStatusSchema},
	"mqx admin broker get --show epochs":                           {brokerEpochSchema},
	"mqx admin broker get --show cold":                             {brokerColdSchema},
	"mqx admin broker get --show consume":                          {brokerConsumeSchema},
	"mqx admin broker get --show lite":                             {brokerLiteSchema},
	"mqx admin broker check, cluster check":                        {sendCheckSchema},
	"mqx admin cluster ls":                                         {clusterListSchema},
	"mqx admin nameserver ls":                                      {nameserverSchema},
	"mqx admin nameserver get --show brokers":                      {nameserverBrokerSchema},
	"mqx admin nameserver get --show topics":                       {nameserverTopicSchema},
	"mqx admin nameserver get --show kv":                           {nameserverKVSchema},
	"mqx admin stats get":                                          {topicRateSchema},
	"mqx admin stats get --name":                                   {statisticSchema},
	"mqx admin queue get":                                          {queueUnitSchema},
	"mqx admin queue verify":                                       {queueVerifySchema},
	"mqx admin ha status":                                          {haStatusSchema},
	"mqx admin ha degraded":                                        {haDegradedSchema},
	"mqx admin ha salvage ls":                                      {salvageSchema},
	"mqx admin ha get":                                             {haReplicaSchema},
	"mqx admin controller ls":                                      {controllerListSchema},
	"mqx admin controller get":                                     {controllerSchema},
	"mqx admin lag get --by group":                                 {lagGroupSchema},
	"mqx admin lag get --by queue":                                 {lagQueueSchema},
	"mqx admin lag get --by topic":                                 {lagTopicSchema},
	"mqx admin lag get --by client":                                {lagClientSchema},
	"mqx wait lag, topic, broker, group":                           {waitSchema},
	"mqx admin offset get":                                         {offsetSchema},
	"mqx admin acl user ls, user get":                              {userSchema},
	"mqx admin acl policy ls, policy get":                          {policySchema},
	"mqx admin config diff":                                        {configDiffSchema},
	"mqx admin dlq ls":                                             {dlqSchema},
	"mqx admin message decode":                                     {messageIDSchema},
	"mqx admin message replay --client":                            {directSchema},
	"mqx admin message track":                                      {trackSchema},
	"mqx admin trace get":                                          {traceSchema},
	"mqx admin queue migrate, drain, resize, broker retire plan":   {movePlanSchema},
	"mqx admin queue migrate, drain, resize, broker retire start":  {moveSchema},
	"mqx admin queue migrate, drain, resize, broker retire status": {moveStatusSchema},
}
